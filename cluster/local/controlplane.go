package local

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"k8s.io/client-go/tools/clientcmd/api"
)

// auditPolicy logs what ServiceAccounts ask for, so that their power can be
// compared with what they use. Those of Kubernetes' own controllers are none of
// our business, and loud.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: None, userGroups: ["system:serviceaccounts:kube-system"]}
- {level: Metadata, userGroups: ["system:serviceaccounts"]}
- {level: None}
`

// maxPortAttempts is how often a component is tried on other ports when
// somebody else took the ones that were free a moment before.
const maxPortAttempts = 5

// startEtcd starts the store and returns its address. Clients need a
// certificate: its port is open to every user of the machine.
func (p *Plane) startEtcd(ctx context.Context) (string, error) {
	var url string
	err := p.startOnFreePorts(ctx, 2, func(port []int) Component {
		url = "https://" + loopback(port[0])
		peer := "https://" + loopback(port[1])
		cert, key, ca := p.tls("etcd")
		return Component{
			Name: "etcd", Path: p.tools.Path(Etcd),
			Args: []string{
				"--data-dir=" + filepath.Join(p.dir, "etcd"),
				"--listen-client-urls=" + url, "--advertise-client-urls=" + url,
				"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=default=" + peer,
				"--cert-file=" + cert, "--key-file=" + key, "--trusted-ca-file=" + ca, "--client-cert-auth",
				"--peer-cert-file=" + cert, "--peer-key-file=" + key, "--peer-trusted-ca-file=" + ca, "--peer-client-cert-auth",
				// A plane does not outlive its processes, so it need not survive power loss.
				"--unsafe-no-fsync", "--log-level=warn",
			},
			Ready: p.healthy(url+"/health", "etcd"),
		}
	})
	return url, err
}

// startAPIServer starts kube-apiserver and writes the admin's kubeconfig.
func (p *Plane) startAPIServer(ctx context.Context, etcd string) error {
	if err := writePrivate(p.file("audit-policy.yaml"), []byte(auditPolicy)); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(p.AuditLog()), 0o700); err != nil {
		return err
	}
	err := p.startOnFreePorts(ctx, 1, func(port []int) Component {
		p.server = "https://" + net.JoinHostPort(p.host, strconv.Itoa(port[0]))
		cert, key, ca := p.tls("kube-apiserver")
		etcdCert, etcdKey, _ := p.tls("etcd-client")
		return Component{
			Name: "kube-apiserver", Path: p.tools.Path(KubeAPIServer),
			Args: append([]string{
				"--etcd-servers=" + etcd, "--etcd-cafile=" + ca, "--etcd-certfile=" + etcdCert, "--etcd-keyfile=" + etcdKey,
				"--bind-address=" + p.host, "--advertise-address=" + p.host, "--secure-port=" + strconv.Itoa(port[0]),
				"--tls-cert-file=" + cert, "--tls-private-key-file=" + key, "--client-ca-file=" + ca, "--allow-privileged",
				"--service-account-issuer=https://kubernetes.default.svc",
				"--service-account-key-file=" + p.file("pki/sa.pub"), "--service-account-signing-key-file=" + p.file("pki/sa.key"),
				"--audit-policy-file=" + p.file("audit-policy.yaml"), "--audit-log-path=" + p.AuditLog(),
				"--audit-log-maxsize=200", "--audit-log-maxbackup=2",
				"--profiling=false",
			}, p.forNode()...),
			Env:   memoryForTime,
			Ready: p.healthy(p.server+"/readyz", "admin"),
		}
	})
	if err != nil {
		return err
	}
	return p.writeUserKubeconfig("admin", p.Kubeconfig())
}

// forNode are the arguments of kube-apiserver that depend on what the node is.
func (p *Plane) forNode() []string {
	if p.subnet == nil {
		return []string{
			"--authorization-mode=RBAC", "--service-cluster-ip-range=10.96.0.0/16",
			// Endpoints may not be loopback addresses, and no pod runs that would ask for them.
			"--endpoint-reconciler-type=none",
		}
	}
	cert, key, ca := p.tls("kubelet-client")
	return []string{
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--service-cluster-ip-range=" + p.subnet.services(),
		"--kubelet-client-certificate=" + cert, "--kubelet-client-key=" + key, "--kubelet-certificate-authority=" + ca,
		"--kubelet-preferred-address-types=InternalIP",
	}
}

// startControllerManager starts what collects garbage, empties namespaces and
// runs the workload controllers, each as its own ServiceAccount.
func (p *Plane) startControllerManager(ctx context.Context) error {
	config := p.file("kube-controller-manager.kubeconfig")
	if err := p.writeUserKubeconfig("kube-controller-manager", config); err != nil {
		return err
	}
	return p.startOnFreePorts(ctx, 1, func(port []int) Component {
		cert, key, ca := p.tls("controllers")
		return Component{
			Name: "kube-controller-manager", Path: p.tools.Path(ControllerManager),
			Args: []string{
				"--kubeconfig=" + config, "--bind-address=127.0.0.1", "--secure-port=" + strconv.Itoa(port[0]),
				"--tls-cert-file=" + cert, "--tls-private-key-file=" + key,
				"--use-service-account-credentials", "--service-account-private-key-file=" + p.file("pki/sa.key"), "--root-ca-file=" + ca,
				"--leader-elect=false", "--profiling=false",
				// A machine that sleeps, or has too much to do, must not lose its node.
				"--node-monitor-grace-period=10m",
				// The defaults of 20 and 30 are made for clusters with several masters.
				"--kube-api-qps=200", "--kube-api-burst=400",
			},
			Ready: p.healthy("https://"+loopback(port[0])+"/healthz", "admin"),
		}
	})
}

func (p *Plane) startScheduler(ctx context.Context) error {
	config := p.file("kube-scheduler.kubeconfig")
	if err := p.writeUserKubeconfig("kube-scheduler", config); err != nil {
		return err
	}
	return p.startOnFreePorts(ctx, 1, func(port []int) Component {
		cert, key, _ := p.tls("controllers")
		return Component{
			Name: "kube-scheduler", Path: p.tools.Path(Scheduler),
			Args: []string{
				"--kubeconfig=" + config, "--bind-address=127.0.0.1", "--secure-port=" + strconv.Itoa(port[0]),
				"--tls-cert-file=" + cert, "--tls-private-key-file=" + key,
				"--leader-elect=false", "--profiling=false", "--kube-api-qps=200", "--kube-api-burst=400",
			},
			Ready: p.healthy("https://"+loopback(port[0])+"/healthz", "admin"),
		}
	})
}

// startOnFreePorts starts a component on ports which nobody listens on, and on
// others if somebody was faster.
func (p *Plane) startOnFreePorts(ctx context.Context, n int, component func(ports []int) Component) error {
	var err error
	for range maxPortAttempts {
		reserved := make([]int, n)
		for i := range reserved {
			if reserved[i], err = p.ports.reserve(); err != nil {
				return err
			}
		}
		if err = p.Supervisor.Start(ctx, component(reserved)); err == nil || !strings.Contains(err.Error(), "address already in use") {
			return err
		}
	}
	return err
}

// users of the control plane, and the groups that give them their power.
var users = map[string]struct {
	name   string
	groups []string
}{
	"admin":                   {name: "admin", groups: []string{"system:masters"}},
	"kube-controller-manager": {name: "system:kube-controller-manager"},
	"kube-scheduler":          {name: "system:kube-scheduler"},
	"etcd-client":             {name: "kube-apiserver"},
	"kubelet-client":          {name: "steading-local:kube-apiserver"},
}

// makeCertificates makes the plane's authority and everybody's certificate.
func (p *Plane) makeCertificates() error {
	ca, err := newAuthority("steading-local-" + p.name)
	if err != nil {
		return fmt.Errorf("cannot make certificates: %w", err)
	}
	p.ca = ca
	for user, u := range users {
		c, err := ca.client(u.name, u.groups...)
		if err != nil {
			return fmt.Errorf("cannot make certificates: %w", err)
		}
		if err := c.write(p.file("pki/"+user), ca.pem); err != nil {
			return fmt.Errorf("cannot write certificates: %w", err)
		}
	}
	hosts := []string{"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local", p.host}
	if p.subnet != nil {
		hosts = append(hosts, p.subnet.api())
	}
	for _, server := range []string{"etcd", "kube-apiserver", "controllers"} {
		c, err := ca.server(server, hosts...)
		if err != nil {
			return fmt.Errorf("cannot make certificates: %w", err)
		}
		if err := c.write(p.file("pki/"+server), ca.pem); err != nil {
			return fmt.Errorf("cannot write certificates: %w", err)
		}
	}
	return writeServiceAccountKey(p.file("pki/sa.key"), p.file("pki/sa.pub"))
}

// tls is the paths of a certificate, its key and the authority's certificate.
func (p *Plane) tls(name string) (cert, key, ca string) {
	dir := p.file("pki/" + name)
	return filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), filepath.Join(dir, "ca.crt")
}

func (p *Plane) writeUserKubeconfig(user, path string) error {
	cert, key, _ := p.tls(user)
	c, err := os.ReadFile(cert) //nolint:gosec // Our own.
	if err != nil {
		return err
	}
	k, err := os.ReadFile(key) //nolint:gosec // Our own.
	if err != nil {
		return err
	}
	return writeKubeconfig(path, p.name, p.server, p.ca.pem, api.AuthInfo{ClientCertificateData: c, ClientKeyData: k})
}

// healthy asks a health endpoint with the certificate of a user.
func (p *Plane) healthy(url, as string) func(context.Context) error {
	certPath, keyPath, _ := p.tls(as)
	return func(ctx context.Context) error {
		cert, err := tls.LoadX509KeyPair(certPath, keyPath)
		if err != nil {
			return err
		}
		roots := x509.NewCertPool()
		roots.AddCert(p.ca.cert)
		transport := &http.Transport{TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{cert}, RootCAs: roots}}
		defer transport.CloseIdleConnections()
		return get(ctx, &http.Client{Transport: transport}, url)
	}
}

func get(ctx context.Context, c *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // Nothing is lost.
	if body, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10)); resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s says %s: %s", url, resp.Status, tail(string(body), 5))
	}
	return nil
}
