// Package serve runs composers behind Crossplane's composition function protocol: it decodes a request, dispatches on the
// kind of the composite, encodes what the composer wants, and keeps the process observable and quick to stop.
package serve
