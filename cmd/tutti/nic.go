package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"tutti/model/profile"
	"tutti/sim"
	"tutti/topo"
)

// nicFlags say how data gets onto the network.
type nicFlags struct {
	poster     string
	queuePairs int
	gdr        bool
}

const maxQueuePairs = 128 // NCCL's most for a connection

func (f *nicFlags) register(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.poster, "nic", "", "who posts messages: proxy, a CPU thread for each GPU, one after another; or gpu, by itself (default as the profile's handover has it, however many there are)")
	flags.IntVar(&f.queuePairs, "queue-pairs", 0, "of each connection, each of which carries what the profile says (default no limit)")
	flags.BoolVar(&f.gdr, "gdr", true, "NICs reach the GPUs' memory; else data passes through that of the CPU")
	complete(c, "nic", []string{"proxy", "gpu"})
}

// nic reads the flags. Its errors are of usage.
func (f *nicFlags) nic() (n sim.NIC, err error) {
	switch f.poster {
	case "":
	case "proxy":
		n.Poster = profile.ByProxy
	case "gpu":
		n.Poster = profile.ByGPU
	default:
		return n, usage(fmt.Errorf("--nic %s: want proxy or gpu", f.poster))
	}
	if f.queuePairs < 0 || f.queuePairs > maxQueuePairs {
		return n, usage(fmt.Errorf("--queue-pairs %d: want 1 to %d, or 0 for no limit", f.queuePairs, maxQueuePairs))
	}
	n.QueuePairs = f.queuePairs
	return n, nil
}

// stage has the data of clusters pass through the host, if it is to.
func (f *nicFlags) stage(clusters []*topo.Cluster) {
	for _, c := range clusters {
		c.ThroughHost = !f.gdr
	}
}
