package child

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubevirtv1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

var update = flag.Bool("update", false, "write the golden files anew")

// sample registration. Its token must be nowhere but in the Secret.
var sample = Registration{ID: 17, UUID: "3c1d2b52-0c5f-4d5f-9d3a-6b0d3a1f7c11", Token: "5ec3e7c0ffee5ec3e7c0ffee5ec3e7c0ffee5ec3"}

// instance of the pool linux of tenant acme, with the template in a file of testdata.
func instance(t *testing.T, change ...func(*v1alpha1.RunnerInstanceParameters)) *v1alpha1.RunnerInstance {
	t.Helper()
	mg := &v1alpha1.RunnerInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "steading-system", Name: "acme-linux-4kx9vb2m"}}
	mg.Spec.ForProvider = v1alpha1.RunnerInstanceParameters{
		Identity: runtimev1.Identity{Tenant: "acme", UID: "uid-pool"},
		Claim:    runtimev1.ClaimReference{Namespace: "tenant-acme", Name: "linux"},
		Pool:     v1alpha1.PoolReference{Name: "acme-linux", UID: "uid-runner"},
		Config: v1alpha1.RunnerConfig{
			Forgejo:      steading.ForgejoServer{URL: "https://git.example.com"},
			Labels:       []string{"docker", "linux-amd64"},
			JobNamespace: "acme-ci", Assignment: steading.AssignAny,
			StartupTimeoutSeconds: 600, JobTimeoutSeconds: 11400,
		},
	}
	for _, c := range change {
		c(&mg.Spec.ForProvider)
	}
	return mg
}

// pod runs the template in this YAML.
func pod(t *testing.T, template string) func(*v1alpha1.RunnerInstanceParameters) {
	t.Helper()
	raw := raw(t, template)
	return func(p *v1alpha1.RunnerInstanceParameters) {
		p.Config.Pod = &steading.RunnerPod{RunnerImage: "code.forgejo.org/forgejo/runner:12", JobContainer: "job", Template: raw}
	}
}

// vm boots the template in this YAML.
func vm(t *testing.T, template string) func(*v1alpha1.RunnerInstanceParameters) {
	t.Helper()
	raw := raw(t, template)
	return func(p *v1alpha1.RunnerInstanceParameters) {
		p.Config.VM = &steading.RunnerVM{CredentialsDisk: "forgejo-runner", Template: raw}
	}
}

func targeted(p *v1alpha1.RunnerInstanceParameters) {
	p.Config.Assignment = steading.AssignTargeted
	p.Job = &v1alpha1.QueuedJob{ID: 9, Handle: "handle-9"}
}

func withCA(p *v1alpha1.RunnerInstanceParameters) {
	p.Config.Forgejo.CABundle = []byte("-----BEGIN CERTIFICATE-----\n")
}

func raw(t *testing.T, template string) runtime.RawExtension {
	t.Helper()
	j, err := yaml.YAMLToJSON([]byte(template))
	if err != nil {
		t.Fatal(err)
	}
	return runtime.RawExtension{Raw: j}
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

const plainPod = "spec: {containers: [{name: job, image: node:22}]}"

const plainVM = "spec: {template: {spec: {domain: {devices: {}}, volumes: [{name: root, containerDisk: {image: quay.io/acme/openbsd}}]}}}"

func TestChildrenAreAsBefore(t *testing.T) {
	cases := map[string]struct {
		reason string
		of     *v1alpha1.RunnerInstance
	}{
		"pod":          {reason: "what is added to a template that says nothing", of: instance(t, pod(t, plainPod))},
		"pod-full":     {reason: "a template keeps what it says: its grace period, its account, its sidecar, its labels", of: instance(t, pod(t, read(t, "template-pod.yaml")))},
		"pod-targeted": {reason: "a runner for one job asks for it, and does not wait", of: instance(t, pod(t, plainPod), targeted)},
		"pod-ca":       {reason: "the server's CA is trusted besides the image's", of: instance(t, pod(t, plainPod), withCA)},
		"vm":           {reason: "what is added to a machine that says nothing", of: instance(t, vm(t, plainVM))},
		"vm-full":      {reason: "a machine keeps what it says, be it unknown; its disks are its own", of: instance(t, vm(t, read(t, "template-vm.yaml")))},
		"vm-targeted":  {reason: "a guest is told of its job by a file", of: instance(t, vm(t, plainVM), targeted)},
		"vm-ca":        {reason: "a guest is given the CA by a file", of: instance(t, vm(t, plainVM), withCA)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o, err := Of(tc.of, sample.UUID)
			if err != nil {
				t.Fatal(err)
			}
			if b := marshal(t, o); strings.Contains(b, sample.Token) {
				t.Errorf("the child has the token:\n%s", b)
			}
			got := marshal(t, o) + "---\n" + marshal(t, Credentials(tc.of, sample))
			golden := filepath.Join("testdata", name+".yaml")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(read(t, name+".yaml"), got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func marshal(t *testing.T, o any) string {
	t.Helper()
	b, err := yaml.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestTheCredentialIsKnownAgain: a Secret that was made before a crash says which registration it is of.
func TestTheCredentialIsKnownAgain(t *testing.T) {
	mg := instance(t, pod(t, plainPod))
	s := Credentials(mg, sample)
	got, ok := RegistrationOf(s)
	if diff := cmp.Diff(v1alpha1.Registration{ID: 17, UUID: sample.UUID}, got); diff != "" || !ok {
		t.Errorf("known %v: -want, +got:\n%s", ok, diff)
	}
	if !Ours(mg, s) {
		t.Error("it is not the runner's")
	}
	other := mg.DeepCopy()
	other.Name = "acme-linux-8mzq2p7d"
	if Ours(other, s) {
		t.Error("it is another runner's, too")
	}
	if _, ok := RegistrationOf(&corev1.Secret{}); ok {
		t.Error("any Secret is one")
	}
}

func TestTemplatesAreRefusedByField(t *testing.T) {
	cases := map[string]struct {
		reason string
		of     *v1alpha1.RunnerInstance
		labels map[string]string
		want   string
	}{
		"NotAPod": {
			reason: "what is no pod is told by its field",
			of:     instance(t, pod(t, "spec: {containers: [{name: job, image: 7}]}")),
			want:   "spec.pod.template: it is no template of a pod: json: cannot unmarshal number into Go struct field Container.spec.containers.image of type string",
		},
		"Amount": {
			reason: "to read it takes hours",
			of:     instance(t, pod(t, "spec: {containers: [{name: job, resources: {limits: {cpu: \"1e-999999999\"}}}]}")),
			want:   "spec.pod.template: spec.containers[0].resources.limits.cpu is too large or too small an amount to count with: write some digits and a unit, such as 500m or 2Gi",
		},
		"NotAnAmount": {
			reason: "the one that is none has to be found",
			of:     instance(t, pod(t, "spec: {containers: [{name: job, resources: {requests: {cpu: 1, memory: 2 GB}}}]}")),
			want:   "spec.pod.template.spec.containers[0].resources.requests.memory: it is no amount: write digits and a unit, such as 500m or 2Gi",
		},
		"UnknownField": {
			reason: "a field that is spelled wrongly would be dropped",
			of:     instance(t, pod(t, "spec: {containers: [{name: job, imagePolicy: Always}]}")),
			want:   `spec.pod.template: unknown field "spec.containers[0].imagePolicy"`,
		},
		"NoJobContainer": {
			reason: "the runner has to run somewhere",
			of:     instance(t, pod(t, "spec: {containers: [{name: main}]}")),
			want:   "spec.pod.template.spec.containers: none is called job, which spec.pod.jobContainer says the runner is in",
		},
		"Command": {
			reason: "a command would be lost",
			of:     instance(t, pod(t, "spec: {containers: [{name: job, command: [sh]}]}")),
			want:   "spec.pod.template.spec.containers[job]: it has a command or args, and the runner is what it runs: leave them out",
		},
		"Restart": {
			reason: "a credential is for one run",
			of:     instance(t, pod(t, "spec: {restartPolicy: OnFailure, containers: [{name: job}]}")),
			want:   "spec.pod.template.spec.restartPolicy: it is OnFailure and has to be Never: the credential of a runner that ran is spent",
		},
		"VolumeName": {
			reason: "it is added",
			of:     instance(t, pod(t, "spec: {volumes: [{name: a}, {name: steading-credentials}], containers: [{name: job}]}")),
			want:   "spec.pod.template.spec.volumes[1].name: steading-credentials is the name of a volume that is added",
		},
		"ContainerName": {
			reason: "it is added",
			of:     instance(t, pod(t, "spec: {initContainers: [{name: steading-runner}], containers: [{name: job}]}")),
			want:   "spec.pod.template.spec.initContainers[0].name: steading-runner is the name of a container that is added",
		},
		"SidecarWithTheCredential": {
			reason: "nothing but the job's container is given the credential",
			of:     instance(t, pod(t, "spec: {containers: [{name: job}, {name: spy, volumeMounts: [{name: steading-credentials, mountPath: /x}]}]}")),
			want:   "spec.pod.template.spec.containers[1].volumeMounts[0].name: steading-credentials is for the container of the job alone",
		},
		"InTheRunnersPlace": {
			reason: "the program would be hidden, or another",
			of:     instance(t, pod(t, "spec: {containers: [{name: job, volumeMounts: [{name: a, mountPath: /steading/../steading/bin}]}]}")),
			want:   "spec.pod.template.spec.containers[0].volumeMounts[0].mountPath: /steading/../steading/bin is where the runner is put: use another folder",
		},
		"ReservedLabel": {
			reason: "it would count for another runner",
			of:     instance(t, pod(t, "metadata: {labels: {steading.dev/runner: x}}\nspec: {containers: [{name: job}]}")),
			want:   "spec.pod.template.metadata.labels: steading.dev/runner is a label that is added: leave it out",
		},
		"Finalizer": {
			reason: "pods would stay for ever",
			of:     instance(t, pod(t, "metadata: {finalizers: [example.com/stay]}\nspec: {containers: [{name: job}]}")),
			want:   "spec.pod.template.metadata: finalizers and ownerReferences keep a runner from being deleted, or have it deleted: leave them out",
		},
		"VMFinalizer": {
			reason: "machines would stay for ever",
			of:     instance(t, vm(t, "metadata: {finalizers: [example.com/stay]}\n"+plainVM)),
			want:   "spec.vm.template.metadata: finalizers and ownerReferences keep a runner from being deleted, or have it deleted: leave them out",
		},
		"Privileged": {
			reason: "a namespace that says nothing enforces baseline",
			of:     instance(t, pod(t, "spec: {containers: [{name: job, securityContext: {privileged: true}}]}")),
			want:   "spec.pod.template: the job namespace enforces Pod Security baseline, which it does not meet: privileged (container \"job\" must not set securityContext.privileged=true)",
		},
		"PrivilegedWhereItIsAllowed": {
			reason: "the namespace's labels decide",
			of:     instance(t, pod(t, "spec: {containers: [{name: job, securityContext: {privileged: true}}]}")),
			labels: map[string]string{"pod-security.kubernetes.io/enforce": "privileged"},
		},
		"Restricted": {
			reason: "the namespace's labels decide, and what is added is not what fails",
			of:     instance(t, pod(t, plainPod)),
			labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
			want: "spec.pod.template: the job namespace enforces Pod Security restricted, which it does not meet: " +
				`allowPrivilegeEscalation != false (container "job" must set securityContext.allowPrivilegeEscalation=false), ` +
				`unrestricted capabilities (container "job" must set securityContext.capabilities.drop=["ALL"]), ` +
				`runAsNonRoot != true (pod or container "job" must set securityContext.runAsNonRoot=true), ` +
				`seccompProfile (pod or container "job" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")`,
		},
		"WrongLevel": {
			reason: "what admission cannot read it takes for the strictest",
			of:     instance(t, pod(t, "spec: {hostNetwork: true, containers: [{name: job}]}")),
			labels: map[string]string{"pod-security.kubernetes.io/enforce": "lax"},
			want: "spec.pod.template: the job namespace enforces Pod Security restricted, which it does not meet: " +
				`host namespaces (hostNetwork=true), allowPrivilegeEscalation != false (container "job" must set securityContext.allowPrivilegeEscalation=false), ` +
				`unrestricted capabilities (container "job" must set securityContext.capabilities.drop=["ALL"]), ` +
				`runAsNonRoot != true (pod or container "job" must set securityContext.runAsNonRoot=true), ` +
				`seccompProfile (pod or container "job" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")`,
		},
		"PlainPod": {reason: "it is all right", of: instance(t, pod(t, plainPod))},
		"MachineNotAnAmount": {
			reason: "the one that is none has to be found",
			of:     instance(t, vm(t, "spec: {template: {spec: {domain: {memory: {guest: lots}}}}}")),
			want:   "spec.vm.template.spec.template.spec.domain.memory.guest: it is no amount: write digits and a unit, such as 500m or 2Gi",
		},
		"NotAVM": {
			reason: "what is no machine is told by its field",
			of:     instance(t, vm(t, "spec: {template: []}")),
			want:   "spec.vm.template: it is no VirtualMachine: json: cannot unmarshal array into Go struct field VirtualMachineSpec.spec.template of type v1.VirtualMachineInstanceTemplateSpec",
		},
		"Status": {
			reason: "a template is no machine that exists",
			of:     instance(t, vm(t, plainVM+"\nstatus: {ready: true}")),
			want:   "spec.vm.template.status: a template has metadata and spec only",
		},
		"NoTemplate": {
			reason: "there is nothing to boot",
			of:     instance(t, vm(t, "spec: {runStrategy: Once}")),
			want:   "spec.vm.template.spec.template: it is missing: it has to have the machine's instance",
		},
		"Running": {
			reason: "it starts a machine again",
			of:     instance(t, vm(t, "spec: {running: true, template: {spec: {domain: {devices: {}}}}}")),
			want:   "spec.vm.template.spec.running: leave it out: a runner's machine is started once",
		},
		"RunStrategy": {
			reason: "a credential is for one run",
			of:     instance(t, vm(t, "spec: {runStrategy: Always, template: {spec: {domain: {devices: {}}}}}")),
			want:   "spec.vm.template.spec.runStrategy: it is Always and has to be Once: the credential of a runner that ran is spent",
		},
		"CredentialsVolume": {
			reason: "it is added",
			of:     instance(t, vm(t, "spec: {template: {spec: {domain: {devices: {}}, volumes: [{name: forgejo-runner, emptyDisk: {capacity: 1Gi}}]}}}")),
			want:   "spec.vm.template.spec.template.spec.volumes[0].name: forgejo-runner is the volume of the credentials, which is added: name another in spec.vm.credentialsDisk",
		},
		"CredentialsDisk": {
			reason: "a guest mounts a CDROM",
			of:     instance(t, vm(t, "spec: {template: {spec: {domain: {devices: {disks: [{name: forgejo-runner, disk: {bus: virtio}}]}}}}}")),
			want:   "spec.vm.template.spec.template.spec.domain.devices.disks[forgejo-runner]: it is the disk of the credentials, and has to be a cdrom",
		},
		"HostDisk": {
			reason: "files of the node are no tenant's",
			of:     instance(t, vm(t, "spec: {template: {spec: {domain: {devices: {}}, volumes: [{name: a, hostDisk: {path: /etc/shadow, type: Disk}}]}}}")),
			want:   "spec.vm.template.spec.template.spec.volumes[0].hostDisk: it is a file of the node, which runners have no business with",
		},
		"VMLabel": {
			reason: "it would count for another runner",
			of:     instance(t, vm(t, "spec: {template: {metadata: {labels: {steading.dev/pool: x}}, spec: {domain: {devices: {}}}}}")),
			want:   "spec.vm.template.spec.template.metadata.labels: steading.dev/pool is a label that is added: leave it out",
		},
		"PodNetwork": {
			reason: "a network of another namespace is another tenant's",
			of:     instance(t, pod(t, "metadata: {annotations: {k8s.v1.cni.cncf.io/networks: 'own, tenant-other/lan@eth1'}}\nspec: {containers: [{name: job, image: alpine}]}")),
			want:   "spec.pod.template.metadata.annotations[k8s.v1.cni.cncf.io/networks]: the network lan@eth1 is of namespace tenant-other: use one of the job namespace",
		},
		"PodNetworkInJSON": {
			reason: "in the other way to write it",
			of:     instance(t, pod(t, `metadata: {annotations: {v1.multus-cni.io/default-network: '[{"name": "lan", "namespace": "tenant-other", "mac": "02:00:00:00:00:01"}]'}}`+"\nspec: {containers: [{name: job, image: alpine}]}")),
			want:   "spec.pod.template.metadata.annotations[v1.multus-cni.io/default-network]: the network lan is of namespace tenant-other: use one of the job namespace",
		},
		"OwnPodNetworks": {
			reason: "those of the job namespace may be named with it",
			of:     instance(t, pod(t, `metadata: {annotations: {k8s.v1.cni.cncf.io/networks: 'a, acme-ci/b', v1.multus-cni.io/default-network: '[{"name": "c", "namespace": "acme-ci"}, {"name": "d"}]'}}`+"\nspec: {containers: [{name: job, image: alpine}]}")),
		},
		"MachineNetwork": {
			reason: "a machine is no other",
			of:     instance(t, vm(t, "spec: {template: {spec: {domain: {devices: {}}, networks: [{name: a, multus: {networkName: acme-ci/a}}, {name: b, multus: {networkName: tenant-other/lan}}]}}}")),
			want:   "spec.vm.template.spec.template.spec.networks[1].multus.networkName: the network lan is of namespace tenant-other: use one of the job namespace",
		},
		"MachinesPodNetwork": {
			reason: "nor is the pod that it runs in",
			of:     instance(t, vm(t, "spec: {template: {metadata: {annotations: {k8s.v1.cni.cncf.io/networks: tenant-other/lan}}, spec: {domain: {devices: {}}}}}")),
			want:   "spec.vm.template.spec.template.metadata.annotations[k8s.v1.cni.cncf.io/networks]: the network lan is of namespace tenant-other: use one of the job namespace",
		},
		"PlainVM": {reason: "it is all right", of: instance(t, vm(t, plainVM))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := Check(tc.of.Spec.ForProvider.Config, tc.labels); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestWhatIsAddedIsRestricted: a template that is written for the strictest standard meets it with what is added, too.
func TestWhatIsAddedIsRestricted(t *testing.T) {
	strict := instance(t, pod(t, `
spec:
  securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
  containers:
  - {name: job, image: node:22, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}
`))
	if err := Check(strict.Spec.ForProvider.Config, map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}); err != nil {
		t.Error(err)
	}
}

// TestTheGracePeriodOfTheTemplateStays: a runner is killed, unless its template says otherwise (kubevirt#922, actions-runner-controller's wait of 30 s).
func TestTheGracePeriodOfTheTemplateStays(t *testing.T) {
	cases := map[string]struct {
		reason string
		of     *v1alpha1.RunnerInstance
		want   int64
	}{
		"Pod":      {"killed", instance(t, pod(t, plainPod)), 0},
		"PodKeeps": {"asked", instance(t, pod(t, "spec: {terminationGracePeriodSeconds: 30, containers: [{name: job}]}")), 30},
		"VM":       {"killed", instance(t, vm(t, plainVM)), 0},
		"VMKeeps":  {"asked", instance(t, vm(t, "spec: {template: {spec: {terminationGracePeriodSeconds: 180, domain: {devices: {}}}}}")), 180},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o, err := Of(tc.of, sample.UUID)
			if err != nil {
				t.Fatal(err)
			}
			var got *int64
			if j, ok := o.(*batchv1.Job); ok {
				got = j.Spec.Template.Spec.TerminationGracePeriodSeconds
			} else {
				m := &kubevirtv1.VirtualMachine{}
				if err := yaml.Unmarshal([]byte(marshal(t, o)), m); err != nil {
					t.Fatal(err)
				}
				got = m.Spec.Template.Spec.TerminationGracePeriodSeconds
			}
			if got == nil || *got != tc.want {
				t.Errorf("%s: got %v, want %d", tc.reason, got, tc.want)
			}
		})
	}
}
