package kit

import (
	"io"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// Flags of a provider binary, parsed by kong. The API server is found by KUBECONFIG or from inside the cluster.
type Flags struct {
	PollInterval         time.Duration `help:"How often to look at what is ready, as a fallback to watching it. Jittered by a tenth." default:"10m" env:"POLL_INTERVAL"`
	PollIntervalNotReady time.Duration `help:"How often to look at what is not ready, as a fallback to watching it." default:"5s" env:"POLL_INTERVAL_NOT_READY"`
	DeletionBackoff      time.Duration `help:"How long to wait before deletion that is held up is tried again. Doubles up to --max-deletion-backoff." default:"5m" env:"DELETION_BACKOFF"`
	MaxDeletionBackoff   time.Duration `help:"Longest time between two tries of a deletion that is held up." default:"2h" env:"MAX_DELETION_BACKOFF"`
	MaxReconciles        int           `help:"Reconciles at a time, for each controller." default:"10" env:"MAX_RECONCILES"`
	MaxReconcileRate     int           `help:"Reconciles a second, of all controllers together. Requests to the API server are limited to five times as many." default:"100" env:"MAX_RECONCILE_RATE"`
	MetricsAddress       string        `help:"Address to serve Prometheus metrics at; 0 serves none." default:":8080" env:"METRICS_ADDRESS"`
	HealthAddress        string        `help:"Address to serve /healthz and /readyz at; 0 serves none." default:":8081" env:"HEALTH_ADDRESS"`
	LeaderElect          bool          `help:"Reconcile only while holding the provider's lease." default:"true" negatable:"" env:"LEADER_ELECT"`
	LeaderElectNamespace string        `help:"Namespace of the lease." default:"steading-system" env:"LEADER_ELECT_NAMESPACE"`
	Debug                bool          `help:"Log every step." short:"d" env:"DEBUG"`
}

// Logger makes the binary's logger and has controller-runtime and client-go log to it too.
func (f Flags) Logger(w io.Writer, name string) logging.Logger {
	zl := zap.New(zap.UseDevMode(f.Debug), zap.WriteTo(w)).WithName(name)
	theirs := zl
	if !f.Debug {
		// Errors only: what they say besides is for those who debug them.
		theirs = zap.New(zap.WriteTo(w), zap.Level(zapcore.ErrorLevel)).WithName(name)
	}
	log.SetLogger(theirs)
	klog.SetLogger(theirs)
	return logging.NewLogrLogger(zl)
}
