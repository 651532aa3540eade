package draw_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"tutti/topo"
	"tutti/topo/draw"
	"tutti/topo/fabric"
)

func TestTwo(t *testing.T) {
	s, err := topo.Open("dgx-h100")
	require.NoError(t, err)
	g, n := s.GPUs, s.NETs
	var out bytes.Buffer
	require.NoError(t, draw.Machine(&out, s,
		draw.Route{Label: "ring, channel 0", Nodes: []int{n[0], g[0], g[7], g[6], g[5], g[4], g[3], g[2], g[1], n[1]}},
		draw.Route{Label: "ring, channel 1", Nodes: []int{n[1], g[1], g[2], g[3], g[4], g[5], g[6], g[7], g[0], n[0]}},
		draw.Route{Label: "tree, channel 0", Nodes: []int{n[0], g[0], g[1], g[2], g[3], g[4], g[5], g[6], g[7]}},
	))
	if dir := os.Getenv("PICTURES"); dir != "" {
		require.NoError(t, os.WriteFile(dir+"/two.svg", out.Bytes(), 0o600))
	}
}

func TestAll(t *testing.T) {
	for _, name := range topo.Machines() {
		s, err := topo.Open(name)
		require.NoError(t, err)
		var out bytes.Buffer
		require.NoError(t, draw.Machine(&out, s))
		if dir := os.Getenv("PICTURES"); dir != "" {
			require.NoError(t, os.WriteFile(dir+"/"+name+".svg", out.Bytes(), 0o600))
		}
		out.Reset()
		require.NoError(t, draw.Machine(&out, s, draw.Route{Label: "ring", Nodes: s.GPUs, Closed: true}))
		if dir := os.Getenv("PICTURES"); dir != "" {
			require.NoError(t, os.WriteFile(dir+"/"+name+"-ring.svg", out.Bytes(), 0o600))
		}
	}
}

func TestClusters(t *testing.T) {
	for _, name := range fabric.Names() {
		s, err := fabric.Open(name)
		require.NoError(t, err)
		machine, nodes := s.Machine, s.Nodes
		if machine == "" {
			machine, nodes = "dgx-h100", 100
		}
		text, err := topo.XML(machine)
		require.NoError(t, err)
		c, err := s.Cluster(text, machine, nodes, 0)
		require.NoError(t, err)
		var out bytes.Buffer
		require.NoError(t, draw.Cluster(&out, c))
		if dir := os.Getenv("PICTURES"); dir != "" {
			require.NoError(t, os.WriteFile(dir+"/c-"+name+".svg", out.Bytes(), 0o600))
		}
	}
}
