package build

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"runtime"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// A Program is a static binary of somebody else's, built for this machine, that is to run in pods.
type Program struct {
	// Name of the program, and of its image.
	Name string
	// File of the binary.
	File string
	// Programs besides, static too, by where they are to be: /bin/forgejo-runner.
	Programs map[string]string
	// Folders which go into the image, by where they are to be: /crds.
	Folders map[string]string
}

// ProgramImage is an image of a program, below a path of a registry: like those of ours, for this machine's architecture.
func ProgramImage(below string, p Program) (Artifact, error) {
	img, err := p.image()
	if err != nil {
		return Artifact{}, fmt.Errorf("cannot make an image of %s: %w", p.Name, err)
	}
	digest, err := img.Digest()
	if err != nil {
		return Artifact{}, fmt.Errorf("cannot make an image of %s: %w", p.Name, err)
	}
	return Artifact{Repository: path.Join(below, p.Name), Tags: []string{"local"}, Digest: digest.String(), content: img}, nil
}

func (p Program) image() (v1.Image, error) {
	if err := wantStatic(p.File); err != nil {
		return nil, err
	}
	b, err := os.ReadFile(p.File)
	if err != nil {
		return nil, err
	}
	files, err := p.entries()
	if err != nil {
		return nil, err
	}
	for to, from := range p.Programs {
		b, err := os.ReadFile(from) //nolint:gosec // Who builds the image says which.
		if err != nil {
			return nil, err
		}
		files = append(files, entry{name: strings.TrimPrefix(path.Dir(to), "/") + "/", mode: 0o755}, entry{name: strings.TrimPrefix(to, "/"), mode: 0o755, content: b})
	}
	return programImage(p.Name, b, v1.Platform{OS: "linux", Architecture: runtime.GOARCH}, files...)
}

// entries of the program's folders.
func (p Program) entries() ([]entry, error) {
	var all []entry
	for to, from := range p.Folders {
		err := fs.WalkDir(os.DirFS(from), ".", func(name string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			there := strings.TrimPrefix(path.Join(to, name), "/")
			if d.IsDir() {
				all = append(all, entry{name: there + "/", mode: 0o755})
				return nil
			}
			b, err := fs.ReadFile(os.DirFS(from), name)
			all = append(all, entry{name: there, mode: 0o644, content: b})
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// wantStatic refuses a binary that asks for a loader, which its image does not have.
func wantStatic(file string) error {
	f, err := elf.Open(file)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // Only read.
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return errors.New("it is linked dynamically: build it with CGO_ENABLED=0")
		}
	}
	return nil
}
