package schedule

import (
	"fmt"
	"slices"
	"strings"

	"tutti/model"
	"tutti/topo"
	"tutti/topo/search"
)

// New returns the schedule of a task on the graphs of a cluster. It fails for a
// combination of collective, algorithm and protocol that there is not, for a
// root that is no rank, for buffers that cannot be in place, and for an algorithm
// that the cluster cannot run.
func New(t Task, c *topo.Cluster, g search.Graphs) (Schedule, error) {
	if err := check(t); err != nil {
		return nil, err
	}
	several, uneven := c.Nodes > 1, c.Differs()
	switch t.Algorithm {
	case model.Ring:
		return NewRing(t, search.NewRings(c, g.Ring)), nil
	case model.SimpleRing:
		return NewSimpleRing(t, search.NewRings(c, g.Ring)), nil
	case model.RailRing:
		rails, err := search.RailRings(c)
		if err != nil {
			return nil, err
		}
		return NewRing(t, search.NewRings(c, rails)), nil
	case model.Tree:
		if t.Collective == model.AllReduce {
			return NewTree(t, search.NewTrees(c, g.Tree)), nil
		}
		return NewTreeCast(t, search.NewTrees(c, g.Tree)), nil
	case model.PAT:
		return NewPAT(t, search.NewRails(c)), nil
	case model.Hierarchical:
		if uneven != "" {
			return nil, fmt.Errorf("%v joins the GPUs of the same number on all machines, and %s: want ring or tree", t.Algorithm, uneven)
		}
		return NewHierarchical(t, search.NewRails(c)), nil
	case model.P2P:
		return NewP2P(t, search.NewRails(c)), nil
	case model.OneShot, model.TwoShot:
		switch {
		case several:
			return nil, fmt.Errorf("%v spans one machine, not %d: want %v", t.Algorithm, c.Nodes, model.Hierarchical)
		case t.Algorithm == model.OneShot:
			return NewOneShot(t), nil
		case t.Collective == model.AllReduce:
			return NewTwoShot(t), nil
		default:
			return NewTwoShotCast(t), nil
		}
	case model.CollNet, model.CollNetChain:
		switch {
		case len(g.CollNetDirect.Channels) == 0:
			return nil, fmt.Errorf("%v needs a network that reduces", t.Algorithm)
		case uneven != "" || !g.CollNetDirect.Aligned() || !g.CollNetChain.Aligned():
			return nil, errUnaligned(t, uneven)
		case t.Algorithm == model.CollNet:
			return NewCollNet(t, search.NewHeads(c, g.CollNetDirect)), nil
		default:
			return NewCollNetChain(t, search.NewTrees(c, g.CollNetChain)), nil
		}
	case model.NVLS, model.NVLSTree:
		return newNVLS(t, c, g)
	default:
		return nil, fmt.Errorf("%v has no schedule yet", t.Algorithm)
	}
}

// newNVLS returns one of the schedules that need a switch which reduces.
func newNVLS(t Task, c *topo.Cluster, g search.Graphs) (Schedule, error) {
	switch {
	case g.NVLSError != nil:
		return nil, g.NVLSError
	case t.Algorithm == model.NVLS && c.Nodes > 1 && (t.Collective != model.AllReduce || len(g.CollNetDirect.Channels) == 0):
		return nil, fmt.Errorf("nvls spans one machine, not %d: want nvlstree", c.Nodes)
	case t.Algorithm == model.NVLSTree && c.Nodes == 1:
		return nil, fmt.Errorf("nvlstree joins several machines: want nvls on one")
	}
	heads := search.NewHeads(c, g.NVLS)
	switch uneven := c.Differs(); {
	case t.Algorithm == model.NVLS && c.Nodes > 1 && (uneven != "" || !g.NVLS.Aligned()):
		return nil, errUnaligned(t, uneven)
	case t.Collective == model.AllReduce:
		return NewNVLS(t, heads), nil
	case heads.Heads() < t.Ranks:
		return nil, fmt.Errorf("nvls %v needs every rank to be a head: %d of %d are", t.Collective, heads.Heads(), t.Ranks)
	default:
		return NewNVLSBlocks(t), nil
	}
}

// errUnaligned refuses what the network would have to add up from NETs of
// different numbers; uneven says why they are, if that is known.
func errUnaligned(t Task, uneven string) error {
	if uneven == "" {
		uneven = "the machines of this mixture use others for the same share of the data"
	}
	return fmt.Errorf("%v on a network that reduces is simulated for NETs of the same number on all machines, and %s: want ring, tree or nvlstree", t.Algorithm, uneven)
}

// either lists values of which one is wanted.
func either[T fmt.Stringer](values []T) string {
	var names []string
	for _, v := range values {
		names = append(names, v.String())
	}
	return strings.Join(names, " or ")
}

// check fails for a call that no cluster could carry out.
func check(t Task) error {
	switch {
	case !slices.Contains(t.Algorithm.Collectives(), t.Collective):
		return fmt.Errorf("%v does no %v: want %s", t.Algorithm, t.Collective, either(t.Algorithm.Collectives()))
	case !slices.Contains(t.Algorithm.Protocols(), t.Protocol):
		return fmt.Errorf("%v does not run over %v: want %s", t.Algorithm, t.Protocol, either(t.Algorithm.Protocols()))
	case t.Root < 0 || t.Root >= t.Ranks:
		return fmt.Errorf("root %d is no rank: want one of 0 to %d", t.Root, t.Ranks-1)
	case t.InPlace && !t.CanOverlap():
		return fmt.Errorf("%v cannot be in place", t.Collective)
	default:
		return nil
	}
}
