package child

import (
	"path"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	"github.com/steading-dev/steading/apis/names"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// What is added to a pod. Templates may use neither the names nor the folders.
const (
	// programVolume holds the runner's program, and is also the init container that copies it there.
	programVolume = "steading-runner"
	// credentialsVolume holds the token's file.
	credentialsVolume = "steading-credentials" //nolint:gosec // It is the name of a volume.
	// reservedFolder is where both are mounted.
	reservedFolder    = "/steading"
	programFolder     = reservedFolder + "/bin"
	credentialsFolder = reservedFolder + "/credentials"
	// caFolder holds the CA bundle of the server.
	caFolder = credentialsFolder + "/ca"
	// program in the runner's image, and its name beside the job.
	program = "/bin/forgejo-runner"
)

// maxProgram is what the volume of the program may hold at most. The program has some fifty megabytes.
var maxProgram = resource.MustParse("256Mi")

// nobody is the user that copies the program, of an image whose user is root.
const nobody int64 = 65532

// job runs the runner once, whatever becomes of it: what it registered with is spent by then.
func job(mg *v1alpha1.RunnerInstance, uuid string) (*batchv1.Job, error) {
	c := mg.Spec.ForProvider.Config
	t, err := podTemplate(c.Pod)
	if err != nil {
		return nil, err
	}
	if err := ownNetworks(podField+".metadata.annotations", t.Annotations, c.JobNamespace); err != nil {
		return nil, err
	}
	merge(t, mg, uuid)
	return &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: Job.GroupVersion().String(), Kind: Job.Kind},
		ObjectMeta: metadata(mg, Key(mg)),
		Spec: batchv1.JobSpec{
			Completions:  ptr.To[int32](1),
			Parallelism:  ptr.To[int32](1),
			BackoffLimit: ptr.To[int32](0),
			// Should the provider be away, this ends it: it may take its job at the end of its time without one.
			ActiveDeadlineSeconds: ptr.To(2 * int64(c.JobTimeoutSeconds)),
			Template:              *t,
		},
	}, nil
}

// merge what makes a runner of a pod into its template.
func merge(t *corev1.PodTemplateSpec, mg *v1alpha1.RunnerInstance, uuid string) {
	pod := mg.Spec.ForProvider.Config.Pod
	t.Labels = union(t.Labels, Labels(mg))
	setDefaults(&t.Spec)
	main := container(&t.Spec, pod.JobContainer)
	t.Spec.InitContainers = append([]corev1.Container{copier(pod, t.Spec, *main)}, t.Spec.InitContainers...)
	main.Command = []string{path.Join(programFolder, path.Base(program))}
	main.Args = arguments(mg, uuid)
	main.VolumeMounts = append(main.VolumeMounts,
		corev1.VolumeMount{Name: programVolume, MountPath: programFolder, ReadOnly: true},
		corev1.VolumeMount{Name: credentialsVolume, MountPath: credentialsFolder, ReadOnly: true})
	ca := len(mg.Spec.ForProvider.Config.Forgejo.CABundle) > 0
	if ca {
		trust(main)
	}
	t.Spec.Volumes = append(t.Spec.Volumes, volumes(names.RunnerCredentials(mg.Name), ca)...)
}

// The folders where systems keep the CAs that programs trust, for SSL_CERT_DIR, which takes the place of them.
const systemCAs = "/etc/ssl/certs:/etc/pki/tls/certs"

// trust the server's CA besides those of the image. The runner, which is written in Go, reads all certificates in the folders
// of SSL_CERT_DIR; actions are mostly run by Node. What the template says of either stays.
func trust(main *corev1.Container) {
	dirs := "SSL_CERT_DIR"
	if n := slices.IndexFunc(main.Env, func(e corev1.EnvVar) bool { return e.Name == dirs }); n < 0 {
		main.Env = append(main.Env, corev1.EnvVar{Name: dirs, Value: caFolder + ":" + systemCAs})
	} else if e := &main.Env[n]; e.ValueFrom == nil {
		e.Value = caFolder + ":" + e.Value
	}
	node := "NODE_EXTRA_CA_CERTS"
	if !slices.ContainsFunc(main.Env, func(e corev1.EnvVar) bool { return e.Name == node }) {
		main.Env = append(main.Env, corev1.EnvVar{Name: node, Value: path.Join(caFolder, caKey)})
	}
}

// setDefaults of a pod where it says nothing.
func setDefaults(s *corev1.PodSpec) {
	s.RestartPolicy = corev1.RestartPolicyNever
	if s.TerminationGracePeriodSeconds == nil {
		s.TerminationGracePeriodSeconds = ptr.To[int64](0)
	}
	if s.AutomountServiceAccountToken == nil {
		s.AutomountServiceAccountToken = ptr.To(false)
	}
	if s.ServiceAccountName == "" && s.DeprecatedServiceAccount == "" {
		s.ServiceAccountName = names.RunnerAccount
	}
}

// copier is the init container that brings the program, so that the job's image can be any. It takes what the job's container
// takes, which costs nothing, since they do not run at the same time, and is what a quota of the namespace may ask for.
func copier(pod *steading.RunnerPod, s corev1.PodSpec, main corev1.Container) corev1.Container {
	security := &corev1.SecurityContext{
		AllowPrivilegeEscalation: ptr.To(false),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		ReadOnlyRootFilesystem:   ptr.To(true),
		RunAsNonRoot:             ptr.To(true),
		SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	if s.SecurityContext == nil || ptr.Deref(s.SecurityContext.RunAsUser, 0) == 0 {
		security.RunAsUser = ptr.To(nobody)
	}
	return corev1.Container{
		Name:            programVolume,
		Image:           pod.RunnerImage,
		Command:         []string{"cp", program, path.Join(programFolder, path.Base(program))},
		Resources:       corev1.ResourceRequirements{Limits: main.Resources.Limits, Requests: main.Resources.Requests},
		VolumeMounts:    []corev1.VolumeMount{{Name: programVolume, MountPath: programFolder}},
		SecurityContext: security,
	}
}

// arguments of the runner. One that has to wait for its job waits for ever; one that was made for a job finds it at once, or
// the job is gone.
func arguments(mg *v1alpha1.RunnerInstance, uuid string) []string {
	c := mg.Spec.ForProvider.Config
	args := []string{"one-job", "--url", c.Forgejo.URL, "--uuid", uuid, "--token-url", "file://" + path.Join(credentialsFolder, tokenKey)}
	for _, l := range labels(c) {
		args = append(args, "--label", l)
	}
	if h := Handle(mg); h != "" {
		return append(args, "--handle", h)
	}
	return append(args, "--wait")
}

// Handle of the one job that the runner may take, empty when it may take any.
func Handle(mg *v1alpha1.RunnerInstance) string {
	p := mg.Spec.ForProvider
	if p.Config.Assignment != steading.AssignTargeted || p.Job == nil {
		return ""
	}
	return p.Job.Handle
}

// volumes of the program and of the credential, with the CA bundle if there is one. The files are readable to all users, since
// the job's may be any; but only the job's container mounts them.
func volumes(secret string, ca bool) []corev1.Volume {
	files := []corev1.KeyToPath{{Key: tokenKey, Path: tokenKey}}
	if ca {
		files = append(files, corev1.KeyToPath{Key: caKey, Path: path.Join(path.Base(caFolder), caKey)})
	}
	return []corev1.Volume{
		{Name: programVolume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: &maxProgram}}},
		{Name: credentialsVolume, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName:  secret,
			Items:       files,
			DefaultMode: ptr.To[int32](0o444),
		}}},
	}
}

// container of a pod by name, nil if it has none.
func container(s *corev1.PodSpec, name string) *corev1.Container {
	for i := range s.Containers {
		if s.Containers[i].Name == name {
			return &s.Containers[i]
		}
	}
	return nil
}
