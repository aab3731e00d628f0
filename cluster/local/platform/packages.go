package platform

import (
	"context"
	"errors"
)

// pushed are references to what the registry holds.
type pushed struct {
	function, provider            string
	chartRepository, chartVersion string
	image                         string // without tag
}

func (p *Platform) publish(ctx context.Context) (pushed, error) {
	return pushed{}, errors.New("cannot publish packages: package/build is missing")
}
