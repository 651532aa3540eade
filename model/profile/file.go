package profile

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"tutti/model/units"
	"tutti/topo"
)

//go:embed *.yaml
var files embed.FS

// Profiles lists the names of the built-in profiles, sorted.
func Profiles() []string {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(err) // the folder is in the binary
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = strings.TrimSuffix(e.Name(), ".yaml")
	}
	return names
}

// UnknownError says that a name is neither a built-in profile nor a file's.
type UnknownError string

func (e UnknownError) Error() string {
	return fmt.Sprintf("unknown profile %q: want one of %s, or a FILE.yaml", string(e), strings.Join(Profiles(), ", "))
}

// Open reads the profiles of a comma list, built-in ones by name and others from
// files that end in .yaml, and lays each over those before it. The error is an
// [UnknownError], or names the file, the line and what is wrong there, or the
// constants that none of them has.
func Open(names string) (*Profile, error) {
	p := &Profile{Name: names, Latency: map[topo.LinkType]units.Time{}, Efficiency: map[topo.LinkType]float64{}}
	found := map[string]bool{}
	for _, name := range strings.Split(names, ",") {
		f, err := Load(name)
		if err != nil {
			return nil, err
		}
		if f.SM > 0 {
			p.SM = f.SM
		}
		for _, c := range f.Constants {
			c.field.set(p, c.Value)
			found[c.Path] = true
		}
	}
	var missing []string
	for _, f := range fields {
		if !found[f.path] && !f.optional() {
			missing = append(missing, f.path)
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("profile %s: no value for %s: lay it over another, as in --profile h200-nvswitch,ndr-rail", names, strings.Join(missing, ", "))
	}
	p.extend()
	return p, nil
}

// Load reads one profile, built in or of a file that ends in .yaml, which may
// leave constants out. The errors are those of [Open].
func Load(name string) (*File, error) {
	text, err := read(name)
	if err != nil {
		return nil, err
	}
	return Parse(text, name)
}

// read returns the text of a profile.
func read(name string) ([]byte, error) {
	if strings.HasSuffix(name, ".yaml") || strings.ContainsAny(name, `/\`) {
		return os.ReadFile(name)
	}
	text, err := files.ReadFile(path.Clean(name + ".yaml"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, UnknownError(name)
	}
	return text, err
}

// File is a profile as a file has it.
type File struct {
	// About says which machine this is.
	About string
	// SM is the compute capability of its GPUs, times ten; 0 for any.
	SM int
	// Sources say where the values come from, by the names that these give.
	Sources   map[string]Source
	Constants []Constant
}

// Source is where values come from.
type Source struct {
	// Kind is measured, fitted or datasheet: read off a measurement, fitted to
	// several, or stated by someone else.
	Kind string `yaml:"kind"`
	// Data is the file, paper or page.
	Data string `yaml:"data"`
}

var kinds = []string{"measured", "fitted", "datasheet"}

// Constant is one value of a file.
type Constant struct {
	// Path says which constant it is, as in "base.ring.ll".
	Path string
	// Value is in microseconds, in GB/s, or a share.
	Value float64
	// From names the source.
	From string

	field *field
}

// String writes the value with its unit.
func (c Constant) String() string { return c.field.unit.format(c.Value) }

// Parse reads a profile. It is strict: an error names the line of what is not
// known, said twice, of another form, or without a source.
func Parse(text []byte, name string) (*File, error) {
	r := reader{name: name, seen: map[string]int{}, file: &File{Sources: map[string]Source{}}}
	document, err := parser.ParseBytes(text, 0, parser.AllowDuplicateMapKey())
	if e := yaml.Error(nil); errors.As(err, &e) && e.GetToken() != nil {
		return nil, fmt.Errorf("%s:%d: not YAML: %s", name, e.GetToken().Position.Line, e.GetMessage())
	} else if err != nil {
		return nil, fmt.Errorf("%s:1: not YAML: %w", name, err)
	}
	if len(document.Docs) != 1 || !isMapping(document.Docs[0].Body) {
		return nil, fmt.Errorf("%s:1: not a profile: want about, sources and constants", name)
	}
	if err := r.top(document.Docs[0].Body); err != nil {
		return nil, err
	}
	return r.file, nil
}

// reader goes through the nodes of a file.
type reader struct {
	name string
	file *File
	seen map[string]int // paths, and the lines that they stand on
}

func (r *reader) errorf(n ast.Node, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %w", r.name, line(n), fmt.Errorf(format, args...))
}

func line(n ast.Node) int { return n.GetToken().Position.Line }

func isMapping(n ast.Node) bool { _, ok := n.(ast.MapNode); return ok }

// pairs goes through a mapping's keys and values; anything else has none.
func pairs(n ast.Node) func(yield func(key, value ast.Node) bool) {
	return func(yield func(key, value ast.Node) bool) {
		m, ok := n.(ast.MapNode)
		if !ok {
			return
		}
		for i := m.MapRange(); i.Next(); {
			if !yield(i.Key(), i.Value()) {
				return
			}
		}
	}
}

// text returns what a scalar says, and of anything else where it begins.
func text(n ast.Node) string {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value
	case *ast.LiteralNode:
		return n.Value.Value
	default:
		return n.GetToken().Value
	}
}

func (r *reader) top(n ast.Node) error {
	for key, value := range pairs(n) {
		var err error
		switch text(key) {
		case "about":
			r.file.About = text(value)
		case "sm":
			if r.file.SM, err = strconv.Atoi(text(value)); err != nil || r.file.SM < 1 {
				err = r.errorf(value, "sm is %q: want a compute capability times ten, such as 90", text(value))
			}
		case "sources":
			err = r.sources(value)
		case "constants":
			err = r.group("", "", value)
		default:
			err = r.errorf(key, "unknown %q: want about, sm, sources or constants", text(key))
		}
		if err != nil {
			return err
		}
	}
	if len(r.file.Constants) == 0 {
		return r.errorf(n, "no constants")
	}
	return nil
}

func (r *reader) sources(n ast.Node) error {
	if !isMapping(n) {
		return r.errorf(n, "sources: want names, each with kind and data")
	}
	for key, value := range pairs(n) {
		var s Source
		for part, said := range pairs(value) {
			switch text(part) {
			case "kind":
				s.Kind = text(said)
			case "data":
				s.Data = text(said)
			}
		}
		if !slices.Contains(kinds, s.Kind) || s.Data == "" {
			return r.errorf(key, "source %s: want {kind: %s, data: WHERE}", text(key), strings.Join(kinds, "|"))
		}
		r.file.Sources[text(key)] = s
	}
	return nil
}

// group reads a mapping of constants, or of further groups, under a path. A key
// "from" names the source of all values of its mapping and those within; a
// constant with a source of its own is a mapping of value and from.
func (r *reader) group(under, from string, n ast.Node) error {
	if !isMapping(n) {
		return r.errorf(n, "%s: want a mapping", cmp.Or(under, "constants"))
	}
	for key, value := range pairs(n) {
		if text(key) == "from" {
			from = text(value)
			if _, known := r.file.Sources[from]; !known {
				return r.errorf(value, "unknown source %q: want one of %s", from, strings.Join(slices.Sorted(maps.Keys(r.file.Sources)), ", "))
			}
		}
	}
	for key, value := range pairs(n) {
		if text(key) == "from" {
			continue
		}
		place := strings.TrimPrefix(under+"."+text(key), ".")
		err := error(nil)
		switch {
		case text(key) == "value":
			err = r.constant(under, from, key, value)
		case isMapping(value):
			err = r.group(place, from, value)
		default:
			err = r.constant(place, from, key, value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) constant(place, from string, key, value ast.Node) error {
	i := index(place)
	if i < 0 {
		return r.errorf(key, "unknown constant %s", place)
	}
	if first, twice := r.seen[place]; twice {
		return r.errorf(key, "%s stands on line %d already", place, first)
	}
	r.seen[place] = line(key)
	if from == "" {
		return r.errorf(key, "%s has no source: want from: and one of sources", place)
	}
	v, err := fields[i].unit.parse(text(value))
	if err != nil {
		return r.errorf(value, "%s is %w", place, err)
	}
	r.file.Constants = append(r.file.Constants, Constant{place, v, from, &fields[i]})
	return nil
}
