package render

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/releaseutil"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// argument of the binary when it is to render.
const argument = "render-chart"

// maxMessage of a refusal, in bytes. It is far more than is shown, so that what is cut is not a part of a secret.
const maxMessage = 64 << 10

// Answer of the process: a question on the way, or one of the others at the end.
type answer struct {
	Lookup   *question       `json:"lookup,omitempty"`
	Rendered *Rendered       `json:"rendered,omitempty"`
	Values   json.RawMessage `json:"values,omitempty"`
	Refused  string          `json:"refused,omitempty"`
}

// A question to the API server, which is only ever read.
type question struct {
	Path   string `json:"path"`
	Query  string `json:"query,omitempty"`
	Accept string `json:"accept,omitempty"`
}

// A reply of the API server.
type reply struct {
	Status      int
	ContentType string
	Body        []byte
	Error       string
}

// ServeIfAsked renders and ends the process if it was started for that. It is the first thing that a binary does which renders.
func ServeIfAsked() {
	if len(os.Args) != 2 || os.Args[1] != argument {
		return
	}
	// Helm's rendering warns there, and quotes values.
	log.SetOutput(io.Discard)
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "cannot render:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func serve(in io.Reader, out io.Writer) error {
	from := gob.NewDecoder(in)
	var l Limits
	if err := from.Decode(&l); err != nil {
		return err
	}
	if err := l.holdIn(); err != nil {
		return fmt.Errorf("cannot set the limits: %w", err)
	}
	var j Job
	if err := from.Decode(&j); err != nil {
		return err
	}
	to := json.NewEncoder(out)
	to.SetEscapeHTML(false)
	a, err := j.do(l, &asker{from: from, to: to, left: 2 * l.Lookups})
	if err != nil {
		a = answer{Refused: truncated(err.Error())}
	}
	return to.Encode(a)
}

func truncated(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	return strings.ToValidUTF8(message[:maxMessage], "") + "..."
}

func (j Job) do(l Limits, a *asker) (answer, error) {
	if j.Document != nil {
		values, err := yaml.YAMLToJSON(j.Document)
		if err != nil {
			return answer{}, errors.New("it is not YAML") // The parser's error may quote a line.
		}
		if len(values) > l.Output {
			return answer{}, fmt.Errorf("its aliases make it larger than %s", size(l.Output))
		}
		return answer{Values: values}, nil
	}
	r, err := j.render(l, a)
	return answer{Rendered: r}, err
}

func (j Job) render(l Limits, a *asker) (*Rendered, error) {
	c, err := loader.LoadArchive(bytes.NewReader(j.Chart))
	if err != nil {
		return nil, fmt.Errorf("cannot read the chart's archive: %w", err)
	}
	r := &Rendered{Name: c.Name(), Version: c.Metadata.Version, AppVersion: c.Metadata.AppVersion}
	if len(r.Name)+len(r.Version)+len(r.AppVersion) > maxMessage {
		return nil, errors.New("the chart's name and versions are longer than names are")
	}
	if crds := c.CRDObjects(); len(crds) > 0 {
		r.CRD = crds[0].Filename
	}
	files, err := j.files(c, a)
	if err != nil {
		return nil, err
	}
	hooks, manifests, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	if err != nil {
		return nil, fmt.Errorf("the chart renders what is not YAML: %w", err)
	}
	for _, h := range hooks {
		r.Hooks = append(r.Hooks, Hook{Kind: h.Kind, Name: h.Name, Path: h.Path, Test: slices.Equal(h.Events, []release.HookEvent{release.HookTest})})
	}
	return r, r.take(manifests, l)
}

// files that the chart renders, by name.
func (j Job) files(c *chart.Chart, a *asker) (map[string]string, error) {
	values := map[string]any{}
	if err := json.Unmarshal(j.Values, &values); err != nil {
		return nil, fmt.Errorf("cannot read the values: %w", err)
	}
	if err := chartutil.ProcessDependenciesWithMerge(c, values); err != nil {
		return nil, fmt.Errorf("cannot work out the chart's dependencies: %w", err)
	}
	caps := chartutil.DefaultCapabilities
	if j.Capabilities != nil {
		caps = j.Capabilities
		if v := c.Metadata.KubeVersion; v != "" && !chartutil.IsCompatibleRange(v, caps.KubeVersion.String()) {
			return nil, fmt.Errorf("the chart wants Kubernetes %s and the cluster is %s", v, caps.KubeVersion.String())
		}
	}
	o := chartutil.ReleaseOptions{Name: j.Release, Namespace: j.Namespace, Revision: j.Revision, IsInstall: !j.Upgrade, IsUpgrade: j.Upgrade}
	v, err := chartutil.ToRenderValuesWithSchemaValidation(c, values, o, caps, j.Loose)
	if err != nil {
		return nil, fmt.Errorf("the chart refuses its values: %w", err)
	}
	e := engine.Engine{LintMode: j.Loose}
	if j.LooksUp {
		e = engine.New(&rest.Config{Host: "http://cluster", Transport: a, QPS: -1})
	}
	files, err := e.Render(c, v)
	if err != nil {
		return nil, fmt.Errorf("the chart does not render: %w", err)
	}
	for name := range files {
		if strings.HasSuffix(name, chartutil.NotesName) {
			delete(files, name)
		}
	}
	return files, nil
}

// take what was rendered, as far as it is not too much.
func (r *Rendered) take(manifests []releaseutil.Manifest, l Limits) error {
	on := scale{left: l.Output}
	for _, m := range manifests {
		objs, err := Objects([]byte(m.Content))
		if err != nil {
			return fmt.Errorf("cannot read what the chart renders: %w", err)
		}
		for _, obj := range objs {
			switch {
			case on.weigh(obj.Object, 0):
			case on.left == tooDeep:
				return fmt.Errorf("the chart renders %s %q deeper than %d levels, which no object is: correct it", obj.GetKind(), obj.GetName(), maxDepth)
			default:
				return fmt.Errorf("the chart renders more than %s: have it make less, or split it into several components", size(l.Output))
			}
			raw, err := obj.MarshalJSON()
			if err != nil {
				return fmt.Errorf("cannot read what the chart renders: %w", err)
			}
			r.Objects = append(r.Objects, raw)
		}
		if len(r.Objects) > l.Objects {
			return fmt.Errorf("the chart renders more than %d objects: have it make fewer, or split it into several components", l.Objects)
		}
	}
	return nil
}

// An asker is the way of the process to the API server: it asks the provider.
type asker struct {
	from *gob.Decoder
	to   *json.Encoder
	left int
}

// RoundTrip asks.
func (a *asker) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
	if a.left--; a.left < 0 {
		return nil, errors.New("the chart looks up too much: have it look up less")
	}
	q := question{Path: req.URL.Path, Query: req.URL.RawQuery, Accept: req.Header.Get("Accept")}
	if err := a.to.Encode(answer{Lookup: &q}); err != nil {
		return nil, err
	}
	var r reply
	if err := a.from.Decode(&r); err != nil {
		return nil, err
	}
	if r.Error != "" {
		return nil, errors.New(r.Error)
	}
	return &http.Response{
		Status: http.StatusText(r.Status), StatusCode: r.Status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
		Header: http.Header{"Content-Type": {r.ContentType}}, Body: io.NopCloser(bytes.NewReader(r.Body)), ContentLength: int64(len(r.Body)),
	}, nil
}
