package sim_test

import (
	"fmt"
	"log"

	"tutti/model"
	"tutti/model/profile"
	"tutti/model/schedule"
	"tutti/sim"
	"tutti/topo"
	"tutti/topo/search"
)

// How long do 128 GPUs take for 1 GiB by ring? (README, "As a library".)
func Example() {
	machine, err := topo.Open("dgx-h100") // or an NCCL topology XML
	if err != nil {
		log.Fatal(err)
	}
	cluster, err := topo.NewCluster(machine, 16, 0, topo.RailOptimised)
	if err != nil {
		log.Fatal(err)
	}
	task := schedule.Task{
		Collective: model.AllReduce, Algorithm: model.Ring, Protocol: model.Simple, Datatype: model.Float32,
		Count: 1 << 28, Channels: 16, Ranks: cluster.Ranks(), Nodes: cluster.Nodes,
	}
	s, err := schedule.New(task, cluster, search.All(cluster))
	if err != nil {
		log.Fatal(err)
	}
	result, err := sim.Run(s, cluster, profile.ForGPU(machine.SM()))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Time)
	// Output: 6217.519 us
}
