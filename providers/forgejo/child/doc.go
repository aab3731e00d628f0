// Package child is what runs a runner in its job namespace: a Job of batch/v1 or a VirtualMachine of KubeVirt, made of the
// template in its config, and the Secret beside it with the credential that it was given.
//
// A template says what it likes and keeps it. Added is what makes a runner of it, and where the template says nothing: that
// it is started once, that it is killed rather than asked to leave, and that no token of a service account is mounted. What
// would make a runner unsafe or wrong is refused, by [Check], with the name of the field: a container that mounts the
// credential beside the one that needs it, a restart with a credential that is spent, a pod that its namespace's Pod Security
// Standard does not allow.
//
// The credential is in the Secret only: the child names it, and holds none of it.
package child
