package docs

import (
	"fmt"
	"os"
	"strings"
)

// A page is a Markdown file, in pieces.
type page struct {
	path   string
	pieces []piece
}

// A piece is lines of a page: of text, or a command with its output.
type piece struct {
	// line of the page at which it starts.
	line int
	// text of the piece, or the command as it is shown.
	text []string
	// command for bash. Empty: the piece is text.
	command string
	// output that is shown.
	output []string
}

const (
	fence  = "```"
	prompt = "$ "
	// console is what blocks are called that are run.
	console = fence + "console"
	// hereDocument ends where a line is just this.
	hereDocument = "EOF"
)

func readPage(path string) (*page, error) {
	raw, err := os.ReadFile(path) //nolint:gosec // A page of ours.
	if err != nil {
		return nil, fmt.Errorf("cannot read page: %w", err)
	}
	return parsePage(path, string(raw))
}

func parsePage(path, content string) (*page, error) {
	p := &page{path: path}
	inside := false
	lines := strings.Split(content, "\n")
	for i := 0; i < len(lines); i++ {
		l := lines[i]
		switch {
		case !inside && l == console:
			inside = true
		case inside && l == fence:
			inside = false
		case inside && strings.HasPrefix(l, prompt):
			c := piece{line: i + 1}
			i = c.takeCommand(lines, i)
			p.pieces = append(p.pieces, c)
			continue
		case inside:
			if last := p.last(); last != nil && last.command != "" {
				last.output = append(last.output, l)
				continue
			}
			return nil, fmt.Errorf("cannot read %s:%d: a console block starts with a command, %q", path, i+1, prompt)
		}
		p.pieces = append(p.pieces, piece{line: i + 1, text: []string{l}})
	}
	if inside {
		return nil, fmt.Errorf("cannot read %s: its last console block does not end", path)
	}
	return p, nil
}

func (p *page) last() *piece {
	if len(p.pieces) == 0 {
		return nil
	}
	return &p.pieces[len(p.pieces)-1]
}

// takeCommand that starts at line i, and return the line where it ends.
func (c *piece) takeCommand(lines []string, i int) int {
	c.text = []string{lines[i]}
	command := []string{strings.TrimPrefix(lines[i], prompt)}
	here := strings.Contains(lines[i], "<<"+hereDocument)
	for i+1 < len(lines) && lines[i+1] != fence && (here || strings.HasSuffix(lines[i], `\`)) {
		i++
		c.text = append(c.text, lines[i])
		command = append(command, lines[i])
		if here && lines[i] == hereDocument {
			break
		}
	}
	c.command = strings.Join(command, "\n")
	return i
}

// String is the page as it is written.
func (p *page) String() string {
	var lines []string
	for _, x := range p.pieces {
		lines = append(append(lines, x.text...), x.output...)
	}
	return strings.Join(lines, "\n")
}
