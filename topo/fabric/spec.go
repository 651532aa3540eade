// Package fabric reads descriptions of cluster fabrics from YAML and holds some
// well-known ones. README.md beside this file gives the schema, with defaults
// and examples.
//
// A [Spec] is such a description. With a machine it becomes a [topo.Cluster]
// ([Spec.Cluster]). Whatever is wrong with it is told with the file's name and
// the line.
package fabric

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"tutti/topo"
)

// Spec is what a file says.
type Spec struct {
	// Fabric has the switches. Its Levels count machines in NVLink domains, and
	// its Rails are those of no machine yet.
	Fabric topo.Fabric
	// About and Source are what the fabric is and where the description comes
	// from.
	About, Source string
	// Machine and Nodes are the cluster that the file is for; empty and 0 where it
	// leaves that open.
	Machine string
	Nodes   int
	// Domain is how many machines make one NVLink domain, at least 1.
	Domain int

	rails [][]string // the NETs on each
	text  *ast.File
}

// Cluster joins machines on the fabric: nodes of them (0: as the file says, or
// else one), of each of which the first gpus GPUs take part (0: all). A machine
// is given by its NCCL topology XML, name standing for it in errors; where the
// file has NVLink domains, one of them is one machine of the cluster.
//
// It fails where [topo.ReadXML] and [topo.NewCluster] do, for NETs that are not
// on the file's rails, and for machines that do not fill their NVLink domains.
func (s *Spec) Cluster(machine []byte, name string, nodes, gpus int) (*topo.Cluster, error) {
	if nodes == 0 {
		nodes = max(s.Nodes, 1)
	}
	hosts := min(s.Domain, nodes)
	machine, err := s.Join(machine, name, nodes)
	if err != nil {
		return nil, err
	}
	if hosts > 1 {
		name = fmt.Sprintf("%d-host %s", hosts, name)
		nodes /= hosts
	}
	system, err := topo.ReadXML(bytes.NewReader(machine), name)
	if err != nil {
		return nil, err
	}
	return s.join([]topo.Part{{Machine: system, Nodes: nodes}}, gpus)
}

// Mixed joins machines of several kinds. It fails where [topo.NewMixedCluster]
// does, and for NVLink domains of several machines.
func (s *Spec) Mixed(parts []topo.Part, gpus int) (*topo.Cluster, error) {
	if s.Domain > 1 {
		return nil, s.fail("nvlink-domain", "joins equal machines: want one machine, or a fabric without NVLink domains")
	}
	return s.join(parts, gpus)
}

func (s *Spec) join(parts []topo.Part, gpus int) (*topo.Cluster, error) {
	if s.rails != nil && (len(parts) > 1 || parts[0].Nodes > 1) {
		var err error
		if parts, err = s.place(parts); err != nil {
			return nil, err
		}
	}
	c, err := topo.NewMixedCluster(parts, gpus, s.Fabric)
	if fault := (*topo.FabricError)(nil); errors.As(err, &fault) {
		return nil, s.fail(fault.Part, fault.Reason)
	}
	return c, err
}

// Join returns the NCCL topology XML of one of the NVLink domains that so many
// machines make: the machine's own where each is for itself.
func (s *Spec) Join(machine []byte, name string, nodes int) ([]byte, error) {
	hosts := min(s.Domain, nodes)
	if hosts < 2 {
		return machine, nil
	}
	if nodes%hosts != 0 {
		return nil, s.fail("nvlink-domain", fmt.Sprintf("%d machines do not fill NVLink domains of %d", nodes, hosts))
	}
	if _, err := topo.ReadXML(bytes.NewReader(machine), name); err != nil {
		return nil, err
	}
	text, err := topo.JoinNVLink(machine, hosts)
	if err != nil {
		return nil, s.fail("nvlink-domain", err.Error())
	}
	return text, nil
}

// place finds the rails of all NETs by their names.
func (s *Spec) place(parts []topo.Part) ([]topo.Part, error) {
	byName, found := map[string]int{}, map[string]bool{}
	for rail, names := range s.rails {
		for _, name := range names {
			byName[name] = rail
		}
	}
	parts = slices.Clone(parts)
	var names, machines []string
	for i, p := range parts {
		parts[i].Rails = nil
		for _, net := range p.Machine.NETs {
			name := p.Machine.Nodes[net].Name
			rail, known := byName[name]
			if !known {
				return nil, s.fail("rails", fmt.Sprintf("NET %s of %s is on none: want all of the machine's on one", name, p.Machine.Name))
			}
			parts[i].Rails = append(parts[i].Rails, rail)
			found[name] = true
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		if !slices.Contains(machines, p.Machine.Name) {
			machines = append(machines, p.Machine.Name)
		}
	}
	for rail, list := range s.rails {
		for _, name := range list {
			if !found[name] {
				return nil, s.fail(fmt.Sprintf("rails[%d]", rail), fmt.Sprintf("%s has no NET %s: want %s", strings.Join(machines, " or "), name, strings.Join(names, ", ")))
			}
		}
	}
	return parts, nil
}

// fail returns an error that names the line of a part of the file, or of the
// nearest part around it that is there.
func (s *Spec) fail(part, reason string) error {
	line := 1
	for path := part; ; {
		if node, err := nodeAt(s.text, path); err == nil {
			line = node.GetToken().Position.Line
			break
		}
		i := strings.LastIndexAny(path, ".[")
		if i < 0 {
			break
		}
		path = path[:i]
	}
	return fmt.Errorf("%s:%d: %s: %s", s.Fabric.Name, line, part, reason)
}

func nodeAt(text *ast.File, path string) (ast.Node, error) {
	p, err := yaml.PathString("$." + path)
	if err != nil {
		return nil, err
	}
	return p.FilterFile(text)
}
