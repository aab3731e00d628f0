package v1alpha1

import xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

// Condition types of an Environment, besides Crossplane's Ready and Synced.
const (
	// ConditionAdmitted is true when the tenant's quota has room for the environment as it is asked for.
	ConditionAdmitted xpv2.ConditionType = "Admitted"
	// ConditionPlaced is true when a context was chosen.
	ConditionPlaced xpv2.ConditionType = "Placed"
	// ConditionBoundaryReady is true when the namespace and its guard rails stand.
	ConditionBoundaryReady xpv2.ConditionType = "BoundaryReady"
	// ConditionDeployed is true when the runtime is rolled out at the version asked for.
	ConditionDeployed xpv2.ConditionType = "Deployed"
	// ConditionComponentsDeployed is true when every component is rolled out as it is asked for. An environment without
	// components does not have it.
	ConditionComponentsDeployed xpv2.ConditionType = "ComponentsDeployed"
	// ConditionExposed is true when the exposed services have a name and a route.
	ConditionExposed xpv2.ConditionType = "Exposed"
	// ConditionCertificateReady is true when the exposed services have a certificate.
	ConditionCertificateReady xpv2.ConditionType = "CertificateReady"
	// ConditionDeletionBlocked is true when deletion waits for something that will not go away by itself.
	ConditionDeletionBlocked xpv2.ConditionType = "DeletionBlocked"
	// ConditionDefinitionsCurrent is false while a definition on the control plane is older than the software that would write
	// by it, or missing: it holds, rather than lose fields. All kinds of claims and managed resources may have it; where nothing
	// ever was wrong it is not there.
	ConditionDefinitionsCurrent xpv2.ConditionType = "DefinitionsCurrent"
)

// Condition types of a Tenant and a Context, besides those above.
const (
	// ConditionHomeReady is true when the tenant's namespace and what guards it stand.
	ConditionHomeReady xpv2.ConditionType = "HomeReady"
	// ConditionReachable is true when the context's API server answers with the credential given.
	ConditionReachable xpv2.ConditionType = "Reachable"
	// ConditionGuarded is true when the guard policies are installed on the context's cluster.
	ConditionGuarded xpv2.ConditionType = "Guarded"
)

// Condition types of a RunnerPool, besides those above.
const (
	// ConditionQueueWatched is true when the last look at the server's queue succeeded.
	ConditionQueueWatched xpv2.ConditionType = "QueueWatched"
	// ConditionRunnersMade is true when nothing keeps the pool from making the runners that its queue needs, but maxRunners.
	ConditionRunnersMade xpv2.ConditionType = "RunnersMade"
)

// Reasons of QueueWatched and RunnersMade.
const (
	ReasonPolled               xpv2.ConditionReason = "Polled"
	ReasonTokenMissing         xpv2.ConditionReason = "TokenMissing"
	ReasonTokenRefused         xpv2.ConditionReason = "TokenRefused"
	ReasonScopeGone            xpv2.ConditionReason = "ScopeGone"
	ReasonServerUnreachable    xpv2.ConditionReason = "ServerUnreachable"
	ReasonServerUnsupported    xpv2.ConditionReason = "ServerUnsupported"
	ReasonMaking               xpv2.ConditionReason = "Making"
	ReasonBackingOff           xpv2.ConditionReason = "BackingOff"
	ReasonSuspended            xpv2.ConditionReason = "Suspended"
	ReasonJobNamespaceRefused  xpv2.ConditionReason = "JobNamespaceRefused"
	ReasonTemplateRefused      xpv2.ConditionReason = "TemplateRefused"
	ReasonScheduleRefused      xpv2.ConditionReason = "ScheduleRefused"
	ReasonRunnerImageMissing   xpv2.ConditionReason = "RunnerImageMissing"
	ReasonKubeVirtMissing      xpv2.ConditionReason = "KubeVirtMissing"
	ReasonGuardRailsNotWritten xpv2.ConditionReason = "GuardRailsNotWritten"
)

// Reasons of Admitted=False and Placed=False, in the order in which they are checked.
const (
	ReasonUnknownContext      xpv2.ConditionReason = "UnknownContext"
	ReasonContextNotRunning   xpv2.ConditionReason = "ContextNotRunning"
	ReasonContextFull         xpv2.ConditionReason = "ContextFull"
	ReasonPlatformDenied      xpv2.ConditionReason = "PlatformClusterDenied"
	ReasonNoContextRunning    xpv2.ConditionReason = "NoContextRunning"
	ReasonAllContextsFull     xpv2.ConditionReason = "AllContextsFull"
	ReasonEnvironmentLimit    xpv2.ConditionReason = "EnvironmentLimitReached"
	ReasonDockerDenied        xpv2.ConditionReason = "DockerDenied"
	ReasonBelowFloor          xpv2.ConditionReason = "BelowFloor"
	ReasonOverEnvironmentCap  xpv2.ConditionReason = "OverEnvironmentCap"
	ReasonOverTenantTotal     xpv2.ConditionReason = "OverTenantTotal"
	ReasonContextImmutable    xpv2.ConditionReason = "ContextImmutable"
	ReasonTenantNotReady      xpv2.ConditionReason = "TenantNotReady"
	ReasonChartNotResolved    xpv2.ConditionReason = "ChartNotResolved"
	ReasonComponentRefused    xpv2.ConditionReason = "ComponentRefused"
	ReasonPendingDecision     xpv2.ConditionReason = "PendingDecision"
	ReasonWaitingForPlacement xpv2.ConditionReason = "WaitingForPlacement"
	ReasonWaitingForBoundary  xpv2.ConditionReason = "WaitingForBoundary"
)

// Reasons of conditions that are true.
const (
	ReasonReachable xpv2.ConditionReason = "Reachable"
	ReasonGuarded   xpv2.ConditionReason = "Guarded"
	ReasonExposed   xpv2.ConditionReason = "Exposed"
	ReasonIssued    xpv2.ConditionReason = "Issued"
	ReasonGranted   xpv2.ConditionReason = "Granted"
	ReasonPlaced    xpv2.ConditionReason = "Placed"
	ReasonStands    xpv2.ConditionReason = "Stands"
	ReasonDeployed  xpv2.ConditionReason = "Deployed"
	ReasonStopped   xpv2.ConditionReason = "Stopped"
	ReasonRecord    xpv2.ConditionReason = "Record"
	ReasonPlanned   xpv2.ConditionReason = "Planned"

	ReasonNoComponents xpv2.ConditionReason = "NoComponents"
)

// Reasons of Exposed=False, CertificateReady=False, Reachable=False and Guarded=False.
const (
	ReasonNotExposed        xpv2.ConditionReason = "NotExposed"
	ReasonExposing          xpv2.ConditionReason = "Exposing"
	ReasonHostTaken         xpv2.ConditionReason = "HostTaken"
	ReasonNoCertificate     xpv2.ConditionReason = "NoCertificate"
	ReasonNameRefused       xpv2.ConditionReason = "NameRefused"
	ReasonNotOurs           xpv2.ConditionReason = "NotOurs"
	ReasonOperatorMissing   xpv2.ConditionReason = "OperatorMissing"
	ReasonRouteRefused      xpv2.ConditionReason = "RouteRefused"
	ReasonIssuing           xpv2.ConditionReason = "Issuing"
	ReasonIssueFailed       xpv2.ConditionReason = "IssueFailed"
	ReasonNotGuarded        xpv2.ConditionReason = "NotGuarded"
	ReasonCredentialMissing xpv2.ConditionReason = "CredentialMissing" //nolint:gosec // A reason, not a credential.
	ReasonCredentialPending xpv2.ConditionReason = "CredentialPending" //nolint:gosec // A reason, not a credential.
	ReasonCredentialRefused xpv2.ConditionReason = "CredentialRefused" //nolint:gosec // A reason, not a credential.
	ReasonCiphertextRefused xpv2.ConditionReason = "CiphertextRefused"
	ReasonCAMismatch        xpv2.ConditionReason = "CAMismatch"
	ReasonAddressRefused    xpv2.ConditionReason = "AddressRefused"
	ReasonWrongAnswer       xpv2.ConditionReason = "WrongAnswer"
)

// Reasons of Deployed=False and ComponentsDeployed=False.
const (
	ReasonRollingOut         xpv2.ConditionReason = "RollingOut"
	ReasonDeployFailed       xpv2.ConditionReason = "DeployFailed"
	ReasonRolledBack         xpv2.ConditionReason = "RolledBack"
	ReasonImagePull          xpv2.ConditionReason = "ImagePull"
	ReasonContainerCrashing  xpv2.ConditionReason = "ContainerCrashing"
	ReasonQuotaExceeded      xpv2.ConditionReason = "QuotaExceeded"
	ReasonUnschedulable      xpv2.ConditionReason = "Unschedulable"
	ReasonChartRefused       xpv2.ConditionReason = "ChartRefused"
	ReasonValuesUnusable     xpv2.ConditionReason = "ValuesUnusable"
	ReasonNotAdmitted        xpv2.ConditionReason = "NotAdmitted"
	ReasonTargetUnreachable  xpv2.ConditionReason = "TargetUnreachable"
	ReasonForeignNamespace   xpv2.ConditionReason = "ForeignNamespace"
	ReasonForeignRelease     xpv2.ConditionReason = "ForeignRelease"
	ReasonNamespaceBlocked   xpv2.ConditionReason = "NamespaceBlocked"
	ReasonWaitingForYoungers xpv2.ConditionReason = "WaitingForDependents"
)

// Reasons of DefinitionsCurrent.
const (
	ReasonDefinitionsOutdated xpv2.ConditionReason = "DefinitionsOutdated"
	ReasonDefinitionsNotReady xpv2.ConditionReason = "DefinitionsNotReady"
	ReasonCurrent             xpv2.ConditionReason = "Current"
)
