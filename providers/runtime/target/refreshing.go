package target

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/restmapper"
	"k8s.io/utils/clock"
)

// refreshPause is how long a kind that the server does not know is believed to stay so. Whoever asks for it may be a tenant.
const refreshPause = 30 * time.Second

// A Mapper knows the server's kinds. It asks the server again, once in a while, when it is asked for one that it does not know:
// client-go's own believes for ever what it once read.
type Mapper struct {
	*restmapper.DeferredDiscoveryRESTMapper // reads once

	clock clock.PassiveClock

	mu        sync.Mutex
	refreshed time.Time
}

var _ meta.ResettableRESTMapper = &Mapper{}

func newMapper(d discovery.CachedDiscoveryInterface, c clock.PassiveClock) *Mapper {
	return &Mapper{DeferredDiscoveryRESTMapper: restmapper.NewDeferredDiscoveryRESTMapper(d), clock: c}
}

// Reset forgets the server's kinds.
func (m *Mapper) Reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refreshed = m.clock.Now()
	m.DeferredDiscoveryRESTMapper.Reset()
}

// since reports whether the server's kinds were forgotten after that time.
func (m *Mapper) since(at time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.refreshed.After(at)
}

// refresh forgets the server's kinds, unless that was done a moment ago. It reports whether they were forgotten since it was asked.
func (m *Mapper) refresh(asked time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.clock.Since(m.refreshed) >= refreshPause {
		m.refreshed = m.clock.Now()
		m.DeferredDiscoveryRESTMapper.Reset()
	}
	return !m.refreshed.Before(asked)
}

// twice looks for something, and once more after a refresh when it is not known.
func twice[T any](m *Mapper, find func() (T, error)) (T, error) {
	asked := m.clock.Now()
	found, err := find()
	if !meta.IsNoMatchError(err) || !m.refresh(asked) {
		return found, err
	}
	return find()
}

// KindFor a resource.
func (m *Mapper) KindFor(r schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return twice(m, func() (schema.GroupVersionKind, error) { return m.DeferredDiscoveryRESTMapper.KindFor(r) })
}

// KindsFor a resource.
func (m *Mapper) KindsFor(r schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	return twice(m, func() ([]schema.GroupVersionKind, error) { return m.DeferredDiscoveryRESTMapper.KindsFor(r) })
}

// ResourceFor a part of a resource.
func (m *Mapper) ResourceFor(r schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	return twice(m, func() (schema.GroupVersionResource, error) { return m.DeferredDiscoveryRESTMapper.ResourceFor(r) })
}

// ResourcesFor a part of a resource.
func (m *Mapper) ResourcesFor(r schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	return twice(m, func() ([]schema.GroupVersionResource, error) { return m.DeferredDiscoveryRESTMapper.ResourcesFor(r) })
}

// RESTMapping of a kind.
func (m *Mapper) RESTMapping(k schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	return twice(m, func() (*meta.RESTMapping, error) { return m.DeferredDiscoveryRESTMapper.RESTMapping(k, versions...) })
}

// RESTMappings of a kind.
func (m *Mapper) RESTMappings(k schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	return twice(m, func() ([]*meta.RESTMapping, error) { return m.DeferredDiscoveryRESTMapper.RESTMappings(k, versions...) })
}
