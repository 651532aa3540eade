package nccl

import (
	"fmt"
	"strings"

	"tutti/model"
	"tutti/topo"
)

// Settings are the environment variables of NCCL that the model heeds.
type Settings struct {
	// Algo and Proto are NCCL_ALGO and NCCL_PROTO: a list of names, all but these
	// after a ^, and further lists for single functions, as in
	// "ring,tree;allreduce:^tree".
	Algo, Proto string
	// CollNet is NCCL_COLLNET_ENABLE, where a plugin has it.
	CollNet bool
	// NoPAT is NCCL_PAT_ENABLE=0.
	NoPAT bool
	// NetOverhead is NCCL_NET_OVERHEAD, in nanoseconds; 0 for the CPU's.
	NetOverhead int
}

// switches tell which places of the table are enabled.
type switches [len(collectives)][algorithms][protocols]bool

// Left returns the algorithms and the protocols that the lists leave for a
// function, whatever a communicator can run of them. It fails for lists that NCCL
// does not understand, and has none for what is no function of NCCL's.
func (s Settings) Left(c model.Collective) (algos []Algorithm, protos []model.Protocol, err error) {
	a, err := parseList("NCCL_ALGO", s.Algo, algorithmNames[:])
	if err != nil {
		return nil, nil, err
	}
	p, err := parseList("NCCL_PROTO", s.Proto, protocolNames[:])
	if err != nil {
		return nil, nil, err
	}
	f, ok := index(c)
	if !ok {
		return nil, nil, nil
	}
	for i := range algorithms {
		if a.on(f, int(i)) {
			algos = append(algos, i)
		}
	}
	for i := range protocols {
		if p.on(f, i) {
			protos = append(protos, model.Protocol(i))
		}
	}
	return algos, protos, nil
}

// enabled works out the switches: what the lists leave on, less what the
// communicator cannot run.
func (s Settings) enabled(c *Communicator) (on switches, err error) {
	algos, err := parseList("NCCL_ALGO", s.Algo, algorithmNames[:])
	if err != nil {
		return on, err
	}
	protos, err := parseList("NCCL_PROTO", s.Proto, protocolNames[:])
	if err != nil {
		return on, err
	}
	for f := range on {
		for a := range algorithms {
			for p := range protocols {
				on[f][a][p] = algos.on(f, int(a)) && protos.on(f, p) && s.possible(c, a) &&
					(p != int(model.LL128) || protos[f] != nil || ll128(c, a))
			}
		}
	}
	return on, nil
}

// possible tells whether a communicator can run an algorithm.
func (s Settings) possible(c *Communicator, a Algorithm) bool {
	switch a {
	case CollNetDirect:
		return s.CollNet && c.NVSwitch
	case CollNetChain:
		return s.CollNet
	case NVLS:
		return s.CollNet || c.Nodes == 1
	case NVLSTree:
		return c.Nodes > 1
	default:
		return true
	}
}

// ll128 tells whether LL128 is trusted: it needs stores of 128 bytes that arrive
// whole.
func ll128(c *Communicator, a Algorithm) bool {
	g, inter := c.graph(a), topo.PathPXB
	if c.MinSM >= 90 {
		inter = topo.PathPXN
	}
	return g.TypeInter <= inter && g.TypeIntra <= topo.PathNVB && c.MinSM == c.MaxSM && c.MinSM >= 70
}

// pat tells whether PAT is on: by itself it is for one GPU on each node.
func (s Settings) pat(c *Communicator) bool {
	return !s.NoPAT && c.Ranks == c.Nodes && c.MinSM >= 60
}

// overhead returns what the network proxy takes in each step, in microseconds
// (getNetOverhead).
func (s Settings) overhead(c *Communicator) float32 {
	switch {
	case s.NetOverhead > 0:
		return float32(float64(s.NetOverhead) * .001)
	case c.AMD:
		return 2
	default:
		return 1
	}
}

// chosen holds, for each function, which names of a list are on; nil where the
// list says nothing.
type chosen [len(collectives)][]bool

func (c chosen) on(f, i int) bool { return c[f] == nil || c[f][i] }

// parseList reads NCCL_ALGO or NCCL_PROTO.
func parseList(variable, list string, names []string) (c chosen, err error) {
	if list == "" {
		return c, nil
	}
	for i, part := range strings.Split(list, ";") {
		function, elements, prefixed := strings.Cut(part, ":")
		if !prefixed {
			if i > 0 {
				return c, fmt.Errorf("%s=%s: only the first list may go without a function: want function:%s", variable, list, part)
			}
			function, elements = "", part
		}
		rest, except := strings.CutPrefix(elements, "^")
		on := make([]bool, len(names))
		for j := range on {
			on[j] = except
		}
		for _, word := range strings.Split(rest, ",") {
			j := indexFold(names, word)
			if j < 0 {
				return c, fmt.Errorf("%s=%s: unknown %q: want one of %s", variable, list, word, strings.Join(names, ", "))
			}
			on[j] = !except
		}
		found := false
		for f := range collectives {
			if !prefixed || strings.EqualFold(function, functionNames[f]) {
				c[f], found = on, true
			}
		}
		if !found {
			return c, fmt.Errorf("%s=%s: unknown function %q: want one of %s", variable, list, function, strings.Join(functionNames[:], ", "))
		}
	}
	return c, nil
}

func indexFold(names []string, word string) int {
	for i, name := range names {
		if strings.EqualFold(name, word) {
			return i
		}
	}
	return -1
}
