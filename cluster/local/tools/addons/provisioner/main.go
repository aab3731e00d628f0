// Command provisioner makes a folder of the node a volume for each claim of its class, and removes it with the volume.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

// name of the provisioner, which its StorageClass gives too.
const name = "steading.dev/folder"

func main() {
	klog.InitFlags(nil)
	folder := flag.String("folder", "/volumes", "Where volumes are. It has the same path here as on the node.")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	config, err := rest.InClusterConfig()
	if err != nil {
		klog.Fatalf("cannot find the API server: %v", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		klog.Fatalf("cannot make a client: %v", err)
	}
	// There is one of it, so that nothing is gained by electing it.
	controller.NewProvisionController(ctx, client, name, folders(*folder), controller.LeaderElection(false)).Run(ctx)
}

// folders below one folder.
type folders string

// Provision makes a folder. Whoever the pod runs as may write there, as on other volumes without an owner of their own.
func (f folders) Provision(_ context.Context, o controller.ProvisionOptions) (*corev1.PersistentVolume, controller.ProvisioningState, error) {
	path := filepath.Join(string(f), o.PVName)
	if err := os.MkdirAll(path, 0o777); err != nil {
		return nil, controller.ProvisioningFinished, fmt.Errorf("cannot make volume %s: %w", o.PVName, err)
	}
	if err := os.Chmod(path, 0o777); err != nil { // Whatever the umask is.
		return nil, controller.ProvisioningFinished, fmt.Errorf("cannot open volume %s to pods: %w", o.PVName, err)
	}
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: o.PVName},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: *o.StorageClass.ReclaimPolicy,
			AccessModes:                   o.PVC.Spec.AccessModes,
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: o.PVC.Spec.Resources.Requests[corev1.ResourceStorage]},
			PersistentVolumeSource:        corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path}},
		},
	}, controller.ProvisioningFinished, nil
}

// Delete the folder of a volume.
func (f folders) Delete(_ context.Context, v *corev1.PersistentVolume) error {
	if err := os.RemoveAll(filepath.Join(string(f), v.Name)); err != nil {
		return fmt.Errorf("cannot remove volume %s: %w", v.Name, err)
	}
	return nil
}
