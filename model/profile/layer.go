package profile

import (
	"fmt"
	"math"
	"strings"

	"github.com/goccy/go-yaml"
)

// Layer writes the named constants of a profile as a file of their own, to be
// laid over the profile that they were fitted from. All of them come from the
// one source. Values are rounded to four digits.
func (p *Profile) Layer(about string, from Source, names []string) ([]byte, error) {
	constants := yaml.MapSlice{{Key: "from", Value: "rows"}}
	for _, name := range names {
		v, ok := p.Value(name)
		if !ok {
			return nil, fmt.Errorf("unknown constant %s", name)
		}
		constants = put(constants, strings.Split(name, "."), fields[index(name)].unit.format(round(v)))
	}
	return yaml.Marshal(yaml.MapSlice{
		{Key: "about", Value: about},
		{Key: "sources", Value: map[string]Source{"rows": from}},
		{Key: "constants", Value: constants},
	})
}

// put sets a value under keys, making the mappings on the way to it.
func put(m yaml.MapSlice, keys []string, value string) yaml.MapSlice {
	if len(keys) == 1 {
		return append(m, yaml.MapItem{Key: keys[0], Value: value})
	}
	for i := range m {
		if m[i].Key == keys[0] {
			m[i].Value = put(m[i].Value.(yaml.MapSlice), keys[1:], value)
			return m
		}
	}
	return append(m, yaml.MapItem{Key: keys[0], Value: put(nil, keys[1:], value)})
}

// round keeps four digits.
func round(v float64) float64 {
	if v == 0 {
		return 0
	}
	scale := math.Pow(10, 3-math.Floor(math.Log10(v)))
	return math.Round(v*scale) / scale
}
