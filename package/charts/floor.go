package charts

import (
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/runtime/floor"
)

// RuntimeFloor is the least that an environment's namespace must be allowed for the runtime to run in it.
func RuntimeFloor(docker bool) (steading.Resources, error) {
	c, err := Runtime()
	if err != nil {
		return steading.Resources{}, err
	}
	return floor.Of(c, docker)
}
