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
	"strings"

	"go.yaml.in/yaml/v3"

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
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("%s: not YAML: %w", name, err)
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s: not a profile: want about, sources and constants", name)
	}
	if err := r.top(doc.Content[0]); err != nil {
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

func (r *reader) errorf(n *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %w", r.name, n.Line, fmt.Errorf(format, args...))
}

// pairs goes through a mapping's keys and values.
func pairs(n *yaml.Node) func(yield func(key, value *yaml.Node) bool) {
	return func(yield func(key, value *yaml.Node) bool) {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if !yield(n.Content[i], n.Content[i+1]) {
				return
			}
		}
	}
}

func (r *reader) top(n *yaml.Node) error {
	for key, value := range pairs(n) {
		var err error
		switch key.Value {
		case "about":
			err = value.Decode(&r.file.About)
		case "sm":
			if err = value.Decode(&r.file.SM); err != nil || r.file.SM < 1 {
				err = r.errorf(value, "sm is %q: want a compute capability times ten, such as 90", value.Value)
			}
		case "sources":
			err = r.sources(value)
		case "constants":
			err = r.group("", "", value)
		default:
			err = r.errorf(key, "unknown %q: want about, sm, sources or constants", key.Value)
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

func (r *reader) sources(n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return r.errorf(n, "sources: want names, each with kind and data")
	}
	for key, value := range pairs(n) {
		var s Source
		if err := value.Decode(&s); err != nil || !slices.Contains(kinds, s.Kind) || s.Data == "" {
			return r.errorf(value, "source %s: want {kind: %s, data: WHERE}", key.Value, strings.Join(kinds, "|"))
		}
		r.file.Sources[key.Value] = s
	}
	return nil
}

// group reads a mapping of constants, or of further groups, under a path. A key
// "from" names the source of all values of its mapping and those within; a
// constant with a source of its own is a mapping of value and from.
func (r *reader) group(under, from string, n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return r.errorf(n, "%s: want a mapping", cmp.Or(under, "constants"))
	}
	for key, value := range pairs(n) {
		if key.Value == "from" {
			from = value.Value
			if _, known := r.file.Sources[from]; !known {
				return r.errorf(value, "unknown source %q: want one of %s", from, strings.Join(slices.Sorted(maps.Keys(r.file.Sources)), ", "))
			}
		}
	}
	for key, value := range pairs(n) {
		if key.Value == "from" {
			continue
		}
		at := strings.TrimPrefix(under+"."+key.Value, ".")
		err := error(nil)
		switch {
		case key.Value == "value":
			err = r.constant(under, from, key, value)
		case value.Kind == yaml.ScalarNode:
			err = r.constant(at, from, key, value)
		default:
			err = r.group(at, from, value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) constant(at, from string, key, value *yaml.Node) error {
	i := index(at)
	if i < 0 {
		return r.errorf(key, "unknown constant %s", at)
	}
	if line, twice := r.seen[at]; twice {
		return r.errorf(key, "%s stands on line %d already", at, line)
	}
	r.seen[at] = key.Line
	if from == "" {
		return r.errorf(key, "%s has no source: want from: and one of sources", at)
	}
	v, err := fields[i].unit.parse(value.Value)
	if err != nil {
		return r.errorf(value, "%s is %w", at, err)
	}
	r.file.Constants = append(r.file.Constants, Constant{at, v, from, &fields[i]})
	return nil
}
