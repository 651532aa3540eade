package search_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tutti/topo/search"
)

// The graphs of a live machine are written as NCCL dumped them there, byte by
// byte, and read back as they were.
func TestGraphFile(t *testing.T) {
	const file = "../testdata/h200x4-live-graph.xml"
	c := cluster(t, "../testdata/h200x4-live.xml", 1, 0)
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	found := search.Find(c, search.Options{NoNVLS: true})
	var text bytes.Buffer
	require.NoError(t, search.WriteXML(&text, c, found))
	assert.Equal(t, string(want), text.String())
	read, err := search.ReadXML(&text, file, c)
	require.NoError(t, err)
	assert.Equal(t, found.Ring, read.Ring)
	assert.Equal(t, found.Tree, read.Tree)

	for _, machine := range []string{"h100x8_coll.xml", "gb200x4.xml", "l40x4_pcie.xml"} {
		c := cluster(t, "testdata/"+machine, 3, 0)
		found := search.Find(c, search.Options{CollNet: true})
		var text bytes.Buffer
		require.NoError(t, search.WriteXML(&text, c, found))
		read, err := search.ReadXML(&text, file, c)
		require.NoError(t, err)
		read.NVLSError = found.NVLSError
		assert.Equal(t, found, read)
	}
}

// A graph that is given stands in the place of a search, which others depend on.
func TestGivenGraphs(t *testing.T) {
	c := cluster(t, "../testdata/azure-ncv4-4xA100-pcie.xml", 1, 0)
	f, err := os.Open("../testdata/azure-ncv4-graph.xml")
	require.NoError(t, err)
	defer f.Close()
	given, err := search.ReadXML(f, "graph", c)
	require.NoError(t, err)
	g := search.Find(c, search.Options{Given: &given})
	assert.Equal(t, []int{0, 3, 2, 1}, g.Ring.Channels[1].GPUs)
	assert.Len(t, g.Tree.Channels, 4)
	assert.Empty(t, g.CollNetChain.Channels) // CollNet takes several machines
	assert.Equal(t, 4, search.Connect(c, g).Collective)
}

func TestGraphFileErrors(t *testing.T) {
	c := cluster(t, "../testdata/h200x4-live.xml", 1, 2)
	graph := func(attributes, channels string) string {
		return `<graphs version="1">` + "\n" + `<graph id="0" pattern="4" crossnic="0" nchannels="1" speedinter="30" typeintra="NVL" typeinter="PIX" samechannels="1" ` +
			attributes + ">" + channels + "</graph></graphs>"
	}
	const speed = `speedintra="30"`
	for name, c2 := range map[string]struct{ text, want string }{
		"another file": {"<system/>", "f: not an NCCL graph file: want one <graphs> element at the top"},
		"version":      {`<graphs version="2"/>`, `f:1: <graphs> has version "2": want 1`},
		"missing":      {graph("", ""), "f:2: <graph> lacks speedintra"},
		"absurd":       {graph(`speedintra="-1"`, ""), `f:2: <graph> has speedintra="-1": want a number from 0 to 1e+06`},
		"few channels": {graph(speed, ""), "f:2: <graph> has nchannels=1, and 0 <channel> elements"},
		"few GPUs":     {graph(speed, "\n<channel><gpu dev=\"0\"/></channel>"), "f:3: <channel> has 1 GPUs: want 2"},
		"GPU twice":    {graph(speed, "<channel><gpu dev=\"0\"/>\n<gpu dev=\"0x0\"/></channel>"), `f:3: <gpu> has dev="0x0": it stands in the channel already`},
		"no such GPU":  {graph(speed, `<channel><gpu dev="0x2"/></channel>`), `f:2: <gpu> has dev="0x2": no such GPU takes part`},
		"no such NET":  {graph(speed, `<channel><net dev="0x9"/></channel>`), `f:2: <net> has dev="0x9": no such NET on ../testdata/h200x4-live.xml`},
		"type":         {strings.Replace(graph(speed, ""), `"NVL"`, `"C2C"`, 1), `f:2: <graph> has typeintra="C2C": want one of [LOC NVL NVB PIX PXB P2C PXN PHB SYS]`},
	} {
		_, err := search.ReadXML(strings.NewReader(c2.text), "f", c)
		assert.EqualError(t, err, c2.want, name)
	}
	between := cluster(t, "../testdata/h200x4-live.xml", 2, 2)
	_, err := search.ReadXML(strings.NewReader(graph(speed, `<channel><gpu dev="0"/><gpu dev="1"/></channel>`)), "f", between)
	assert.EqualError(t, err, "f:2: <channel> has 0 NETs: want one to enter by and one to leave by")
}

// Whatever the text, reading ends in graphs that can be connected, or in an error
// that names the file.
func FuzzReadXML(f *testing.F) {
	for _, file := range []string{"../testdata/h200x4-live-graph.xml", "../testdata/azure-ncv4-graph.xml"} {
		text, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(text)
	}
	c := cluster(f, "../testdata/h200x4-live.xml", 1, 0)
	all := search.All(c)
	f.Fuzz(func(t *testing.T, text []byte) {
		g, err := search.ReadXML(bytes.NewReader(text), "f", c)
		if err != nil {
			require.True(t, strings.HasPrefix(err.Error(), "f:"), err)
			return
		}
		if len(g.Ring.Channels) == 0 {
			g.Ring = all.Ring
		}
		if len(g.Tree.Channels) == 0 {
			g.Tree = all.Tree
		}
		var log, again bytes.Buffer
		require.NoError(t, search.WriteNCCL(&log, c, g, true))
		require.NoError(t, search.WriteXML(&again, c, g))
		same, err := search.ReadXML(&again, "f", c)
		require.NoError(t, err)
		require.Equal(t, g.Ring, same.Ring)
	})
}
