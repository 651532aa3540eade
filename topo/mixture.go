package topo

import (
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// Count is a number of machines of one name.
type Count struct {
	Name  string
	Nodes int
}

var countForm = regexp.MustCompile(`^(.+):([0-9]{1,6})$`)

// ParseMixture reads how many machines there are of which, NAME:N,…, as
// [Cluster.Machine] has it as its name; it is nil for the name of one machine.
func ParseMixture(name string) (list []Count, err error) {
	items := strings.Split(name, ",")
	for _, item := range items {
		form := countForm.FindStringSubmatch(item)
		if form == nil && len(items) == 1 {
			return nil, nil
		}
		if form == nil {
			return nil, fmt.Errorf("%q does not say how many: want NAME:N,…, as in dgx-h100:6,slow.xml:2", item)
		}
		n, _ := strconv.Atoi(form[2])
		if n < 1 || n > MaxNodes {
			return nil, fmt.Errorf("%d nodes: want 1 to %d", n, MaxNodes)
		}
		list = append(list, Count{form[1], n})
	}
	return list, nil
}

// OpenMixture opens the machines of a mixture, each once, or so many of the one
// that a name stands for.
func OpenMixture(name string, nodes int, open func(name string) (*System, error)) ([]Part, error) {
	list, err := ParseMixture(name)
	if err != nil {
		return nil, err
	}
	if list == nil {
		list = []Count{{name, nodes}}
	}
	known := map[string]*System{}
	var parts []Part
	for _, item := range list {
		if known[item.Name] == nil {
			if known[item.Name], err = open(item.Name); err != nil {
				return nil, err
			}
		}
		parts = append(parts, Part{Machine: known[item.Name], Nodes: item.Nodes})
	}
	return parts, nil
}

// ShortName leaves the folders out of the name of a machine, mixture or fabric.
func ShortName(name string) string {
	names := strings.Split(strings.ReplaceAll(name, `\`, "/"), ",")
	for i := range names {
		names[i] = path.Base(names[i])
	}
	return strings.Join(names, ",")
}
