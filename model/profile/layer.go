package profile

import (
	"bytes"
	"fmt"
	"math"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Layer writes the named constants of a profile as a file of their own, to be
// laid over the profile that they were fitted from. All of them come from the
// one source. Values are rounded to four digits.
func (p *Profile) Layer(about string, from Source, names []string) ([]byte, error) {
	top := mapping()
	for _, name := range names {
		at, keys := top, strings.Split(name, ".")
		for _, key := range keys[:len(keys)-1] {
			at = child(at, key)
		}
		v, ok := p.Value(name)
		if !ok {
			return nil, fmt.Errorf("unknown constant %s", name)
		}
		i := index(name)
		add(at, keys[len(keys)-1], scalar(fields[i].unit.format(round(v))))
	}
	source := mapping()
	source.Style = yaml.FlowStyle
	add(source, "kind", scalar(from.Kind))
	add(source, "data", scalar(from.Data))
	sources, constants, doc := mapping(), mapping(), mapping()
	add(sources, "rows", source)
	add(constants, "from", scalar("rows"))
	constants.Content = append(constants.Content, top.Content...)
	add(doc, "about", scalar(about))
	add(doc, "sources", sources)
	add(doc, "constants", constants)
	var b bytes.Buffer
	out := yaml.NewEncoder(&b)
	out.SetIndent(2)
	if err := out.Encode(doc); err != nil {
		return nil, err
	}
	return b.Bytes(), out.Close()
}

// round keeps four digits.
func round(v float64) float64 {
	if v == 0 {
		return 0
	}
	scale := math.Pow(10, 3-math.Floor(math.Log10(v)))
	return math.Round(v*scale) / scale
}

func mapping() *yaml.Node                      { return &yaml.Node{Kind: yaml.MappingNode} }
func scalar(s string) *yaml.Node               { return &yaml.Node{Kind: yaml.ScalarNode, Value: s} }
func add(n *yaml.Node, k string, v *yaml.Node) { n.Content = append(n.Content, scalar(k), v) }

// child returns the mapping under a key, making it if need be.
func child(n *yaml.Node, key string) *yaml.Node {
	for k, v := range pairs(n) {
		if k.Value == key {
			return v
		}
	}
	v := mapping()
	add(n, key, v)
	return v
}
