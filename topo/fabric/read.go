package fabric

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"tutti/model/units"
	"tutti/topo"
)

//go:embed fabrics/*.yaml
var fabrics embed.FS

// Schema is the description of the format, in Markdown.
//
//go:embed README.md
var Schema string

// maxBytes keeps a hostile file from taking memory: those here have 1 kB.
const maxBytes = 64 << 10

// Names lists the built-in fabrics, sorted.
func Names() []string {
	entries, err := fabrics.ReadDir("fabrics")
	if err != nil {
		panic(err) // the folder is in the binary
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = strings.TrimSuffix(e.Name(), ".yaml")
	}
	slices.Sort(names)
	return names
}

// UnknownError says that a name is neither a built-in fabric nor a file's.
type UnknownError string

func (e UnknownError) Error() string {
	return fmt.Sprintf("unknown fabric %q: want one of %s, or a FILE.yaml", string(e), strings.Join(Names(), ", "))
}

// Open returns the built-in fabric of the given name, or reads the file if the
// name ends in .yaml or .yml or has a slash. The error is an [UnknownError],
// that of the file system, or [Read]'s.
func Open(name string) (*Spec, error) {
	text, err := YAML(name)
	if err != nil {
		return nil, err
	}
	return Read(text, name)
}

// YAML returns the text that [Open] reads.
func YAML(name string) ([]byte, error) {
	if strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml") || strings.ContainsAny(name, `/\`) {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return io.ReadAll(io.LimitReader(f, maxBytes+1))
	}
	text, err := fabrics.ReadFile(path.Join("fabrics", name+".yaml"))
	if err != nil {
		return nil, UnknownError(name)
	}
	return text, nil
}

// file is the YAML document; README.md describes the fields.
type file struct {
	About     string  `yaml:"about"`
	Source    string  `yaml:"source"`
	Machine   string  `yaml:"machine"`
	Nodes     *int    `yaml:"nodes"`
	Domain    *int    `yaml:"nvlink-domain"`
	Topology  string  `yaml:"topology"`
	Rails     []names `yaml:"rails"`
	Routing   string  `yaml:"routing"`
	Switching string  `yaml:"switching"`
	Sharing   string  `yaml:"sharing"`
	Seed      uint64  `yaml:"seed"`
	Leaf      *level  `yaml:"leaf"`
	Spine     *level  `yaml:"spine"`
	Core      *level  `yaml:"core"`
}

type level struct {
	Nodes            *int     `yaml:"nodes"`
	PerRail          *bool    `yaml:"per-rail"`
	Switches         *int     `yaml:"switches"`
	Links            *int     `yaml:"links"`
	Rate             rate     `yaml:"rate"`
	Oversubscription *float64 `yaml:"oversubscription"`
	Latency          latency  `yaml:"latency"`
	SHARP            bool     `yaml:"sharp"`
}

// Read reads a fabric; name stands for the file in errors. An error names the
// file and the line: text that is not YAML, a field that is not known or stands
// twice, a value that is not of its kind, levels that do not fit on each other.
func Read(text []byte, name string) (*Spec, error) {
	if len(text) > maxBytes {
		return nil, fmt.Errorf("%s:1: too large for a fabric: want at most %d KiB", name, maxBytes>>10)
	}
	document, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil, located(name, err)
	}
	var f file
	if err := yaml.UnmarshalWithOptions(text, &f, yaml.Strict()); err != nil && !errors.Is(err, io.EOF) {
		return nil, located(name, err)
	}
	s := &Spec{About: f.About, Source: f.Source, Machine: f.Machine, Domain: 1, text: document}
	s.Fabric.Name, s.Fabric.Seed = name, f.Seed
	for _, list := range f.Rails {
		s.rails = append(s.rails, list)
	}
	return s, s.build(&f)
}

// located puts the file's name and line before what the YAML library says.
func located(name string, err error) error {
	if e := yaml.Error(nil); errors.As(err, &e) && e.GetToken() != nil {
		return fmt.Errorf("%s:%d: %s", name, e.GetToken().Position.Line, e.GetMessage())
	}
	return fmt.Errorf("%s:1: %w", name, err)
}

// build checks what the file says, and fills in what it leaves out.
func (s *Spec) build(f *file) error {
	var err error
	if s.Nodes, err = s.count("nodes", f.Nodes, 0, topo.MaxNodes); err != nil {
		return err
	}
	if s.Domain, err = s.count("nvlink-domain", f.Domain, 1, topo.MaxNodes); err != nil {
		return err
	}
	if s.Fabric.Routing, err = oneOf(s, "routing", f.Routing, topo.Adaptive, topo.ECMP); err != nil {
		return err
	}
	if s.Fabric.Switching, err = oneOf(s, "switching", f.Switching, topo.CutThrough, topo.StoreAndForward); err != nil {
		return err
	}
	if s.Fabric.Sharing, err = oneOf(s, "sharing", f.Sharing, topo.Fair, topo.FIFO); err != nil {
		return err
	}
	t, err := oneOf(s, "topology", f.Topology, railOptimised, fatTree, singleSwitch)
	if err != nil {
		return err
	}
	levels := []*level{f.Leaf, f.Spine, f.Core}
	if t == singleSwitch && (f.Spine != nil || f.Core != nil) {
		return s.fail("topology", "a single switch has no level above: want rail-optimised or fat-tree")
	}
	for i, written := range levels {
		if written == nil && (i == 2 || i == 1 && t == singleSwitch) {
			break
		}
		if written == nil {
			written = &level{}
		}
		if err := s.addLevel(i, written, t.defaults(i)); err != nil {
			return err
		}
	}
	if fault := (*topo.FabricError)(nil); errors.As(s.Fabric.Check(), &fault) {
		return s.fail(fault.Part, fault.Reason)
	}
	return nil
}

// addLevel appends a level of switches to the fabric.
func (s *Spec) addLevel(i int, written *level, l topo.Level) error {
	part := topo.LevelName(i) + "."
	var err error
	if l.Nodes, err = s.count(part+"nodes", written.Nodes, l.Nodes*s.Domain, topo.MaxNodes); err != nil {
		return err
	}
	if l.Nodes%s.Domain != 0 {
		return s.fail(part+"nodes", fmt.Sprintf("%d machines: want a multiple of the NVLink domain's %d", l.Nodes, s.Domain))
	}
	l.Nodes /= s.Domain
	if l.Switches, err = s.count(part+"switches", written.Switches, l.Switches, topo.MaxNodes); err != nil {
		return err
	}
	if l.Switches == 0 {
		return s.fail(part+"switches", "missing: want how many there are in a group")
	}
	if l.Links, err = s.count(part+"links", written.Links, 1, topo.MaxNodes); err != nil {
		return err
	}
	if written.PerRail != nil {
		l.PerRail = *written.PerRail
	}
	if written.Oversubscription != nil {
		if l.Oversubscription = *written.Oversubscription; l.Oversubscription <= 0 {
			return s.fail(part+"oversubscription", fmt.Sprintf("%g: want 0.01 to 1000", l.Oversubscription))
		}
		if written.Rate != 0 {
			return s.fail(part+"oversubscription", "follows from rate: want one of the two")
		}
	}
	l.Rate, l.Latency, l.Reduces = units.Rate(written.Rate), units.Time(written.Latency), written.SHARP
	s.Fabric.Levels = append(s.Fabric.Levels, l)
	return nil
}

// count returns a number that must be from 1 to hi, or def if it is not stated.
func (s *Spec) count(part string, stated *int, def, hi int) (int, error) {
	if stated == nil {
		return def, nil
	}
	if *stated < 1 || *stated > hi {
		return 0, s.fail(part, fmt.Sprintf("%d: want 1 to %d", *stated, hi))
	}
	return *stated, nil
}

// oneOf returns the value that a word stands for: the first if there is none.
func oneOf[T fmt.Stringer](s *Spec, part, word string, values ...T) (T, error) {
	var words []string
	for _, v := range values {
		if word == v.String() {
			return v, nil
		}
		words = append(words, v.String())
	}
	if word == "" {
		return values[0], nil
	}
	return values[0], s.fail(part, fmt.Sprintf("%q: want %s", word, strings.Join(words, " or ")))
}

// topology is what defaults a fabric starts from.
type topology int

const (
	railOptimised topology = iota
	fatTree
	singleSwitch
)

func (t topology) String() string {
	return [...]string{"rail-optimised", "fat-tree", "single-switch"}[t]
}

// defaults are what a level has where the file states nothing.
func (t topology) defaults(i int) topo.Level {
	switch {
	case i == 0 && t == railOptimised:
		return topo.Level{Nodes: 32, PerRail: true, Switches: 1}
	case i == 0 && t == fatTree:
		return topo.Level{Nodes: 4, Switches: 1}
	case i == 0:
		return topo.Level{Switches: 1}
	case i == 1:
		return topo.Level{Switches: 32}
	default:
		return topo.Level{}
	}
}

// names is one name or a list of them.
type names []string

// UnmarshalYAML reads either form.
func (n *names) UnmarshalYAML(node ast.Node) error {
	list := []ast.Node{node}
	if s, ok := node.(*ast.SequenceNode); ok {
		list = s.Values
	}
	for _, v := range list {
		word, ok := v.(*ast.StringNode)
		if !ok {
			return &yaml.SyntaxError{Message: "rails: want the names of NETs, or a list of them for each rail", Token: v.GetToken()}
		}
		*n = append(*n, word.Value)
	}
	return nil
}

type rate units.Rate

// UnmarshalYAML reads a rate with its unit.
func (r *rate) UnmarshalYAML(node ast.Node) error {
	v, err := units.ParseRate(scalar(node))
	if err != nil {
		return &yaml.SyntaxError{Message: err.Error(), Token: node.GetToken()}
	}
	*r = rate(v)
	return nil
}

type latency units.Time

// UnmarshalYAML reads a time with its unit.
func (l *latency) UnmarshalYAML(node ast.Node) error {
	v, err := units.ParseTime(scalar(node))
	if err != nil {
		return &yaml.SyntaxError{Message: err.Error(), Token: node.GetToken()}
	}
	*l = latency(v)
	return nil
}

func scalar(node ast.Node) string {
	if s, ok := node.(*ast.StringNode); ok {
		return s.Value
	}
	return node.GetToken().Value
}
