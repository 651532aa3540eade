package fabric_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tutti/model/units"
	"tutti/topo"
	"tutti/topo/fabric"
)

func cluster(t testing.TB, s *fabric.Spec, machine string, nodes int) (*topo.Cluster, error) {
	text, err := topo.XML(machine)
	require.NoError(t, err)
	return s.Cluster(text, machine, nodes, 0)
}

// Every built-in fabric says what it is and where that comes from, and joins the
// machines that it is for.
func TestBuiltIn(t *testing.T) {
	for _, name := range fabric.Names() {
		s, err := fabric.Open(name)
		require.NoError(t, err)
		assert.NotEmpty(t, s.About, name)
		assert.NotEmpty(t, s.Source, name)
		machine, nodes := s.Machine, s.Nodes
		if machine == "" {
			machine, nodes = "dgx-h100", 100
		}
		c, err := cluster(t, s, machine, nodes)
		require.NoError(t, err)
		assert.NotEmpty(t, c.Route(0, c.Ranks()-1, 0, 1), name)
		for _, tier := range c.Tiers() {
			t.Logf("%s: %d %s switches, %d + %d ports, %d cables of %v", name, tier.Switches, tier.Name, tier.Down, tier.Up, tier.Cables, tier.CableRate)
		}
	}
	s, err := fabric.Open("rail-optimised")
	require.NoError(t, err)
	for i, l := range topo.RailOptimised.Levels {
		l.Reduces = true
		assert.Equal(t, l, s.Fabric.Levels[i], "the file says what topo.RailOptimised does")
	}
}

// The counts are those of the reference architecture.
func TestSuperPOD(t *testing.T) {
	for name, want := range map[string][]int{"superpod-4su": {32, 16}, "superpod-16su": {128, 128, 64}} {
		s, err := fabric.Open(name)
		require.NoError(t, err)
		c, err := cluster(t, s, s.Machine, s.Nodes)
		require.NoError(t, err)
		for i, tier := range c.Tiers() {
			assert.Equal(t, want[i], tier.Switches)
			assert.Equal(t, s.Nodes*8, tier.Cables)
			assert.LessOrEqual(t, tier.Down+tier.Up, 64)
			assert.Equal(t, 400*units.Gbps, tier.CableRate)
		}
	}
}

// A rack of GB200 trays is one machine of the cluster, on four rails.
func TestNVLinkDomain(t *testing.T) {
	s, err := fabric.Open("nvl72-rails")
	require.NoError(t, err)
	c, err := cluster(t, s, "gb200x4", 36)
	require.NoError(t, err)
	assert.Equal(t, 2, c.Nodes)
	assert.Equal(t, 144, c.Ranks())
	assert.Equal(t, "18-host gb200x4", c.Machine.Name)
	assert.Equal(t, 8, c.Tiers()[0].Switches)
	assert.Equal(t, 18, c.Tiers()[0].Down)
	assert.Equal(t, 18, c.Tiers()[0].Up)
	c, err = cluster(t, s, "gb200x4", 4)
	require.NoError(t, err)
	assert.Equal(t, 1, c.Nodes, "part of a rack")
}

// All that a file can say.
func TestRead(t *testing.T) {
	s, err := fabric.Read([]byte(`
topology: fat-tree
routing: ecmp
seed: 7
rails: [[mlx5_0, mlx5_1], [mlx5_2, mlx5_3], [mlx5_4, mlx5_5], mlx5_6, mlx5_7]
leaf: {nodes: 2, per-rail: true, rate: 200 Gb/s, latency: 250 ns}
spine: {nodes: 4, switches: 2, links: 3, rate: 50 GB/s}
core: {switches: 4, oversubscription: 1.5, latency: 1us, sharp: true}
`), "f.yaml")
	require.NoError(t, err)
	c, err := cluster(t, s, "dgx-h100", 8)
	require.NoError(t, err)
	assert.Equal(t, topo.Fabric{
		Name: "f.yaml", Seed: 7, Routing: topo.ECMP,
		Levels: []topo.Level{
			{Nodes: 2, PerRail: true, Switches: 1, Links: 1, Rate: 200 * units.Gbps, Latency: 250 * units.Nanosecond},
			{Nodes: 4, Switches: 2, Links: 3, Rate: 400 * units.Gbps},
			{Switches: 4, Links: 1, Oversubscription: 1.5, Latency: units.Microsecond, Reduces: true},
		},
	}, c.Fabric)
	for net, rail := range []int{0, 0, 1, 1, 2, 2, 3, 4} {
		assert.Equal(t, rail, c.Rail(7, net))
	}
	empty, err := fabric.Read(nil, "empty.yaml")
	require.NoError(t, err)
	assert.Equal(t, topo.RailOptimised.Levels[1].Switches, empty.Fabric.Levels[1].Switches)
}

// The examples in the README are sound.
func TestREADME(t *testing.T) {
	examples := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(fabric.Schema, -1)
	require.Len(t, examples, 3)
	for _, e := range examples {
		s, err := fabric.Read([]byte(e[1]), "README.md")
		require.NoError(t, err)
		machine := s.Machine
		if machine == "" {
			machine = "dgx-h100"
		}
		_, err = cluster(t, s, machine, 36)
		require.NoError(t, err)
	}
}

func TestErrors(t *testing.T) {
	for text, want := range map[string]string{
		"leaf: [":                                "f:1: ",
		"leaf:\n  nodes: 4\n nodes: 4":           "f:",
		"machine: a\nspines: 4":                  `f:2: unknown field "spines"`,
		"nodes: 1\nnodes: 2":                     `f:2: mapping key "nodes" already defined at [1:1]`,
		"nodes: many":                            "f:1: cannot unmarshal string into Go struct field file.Nodes of type int",
		"seed: 1\nnodes: 0":                      "f:2: nodes: 0: want 1 to 16384",
		"topology: torus":                        `f:1: topology: "torus": want rail-optimised or fat-tree or single-switch`,
		"sharing: lifo":                          `f:1: sharing: "lifo": want fair or fifo`,
		"switching: circuit":                     `f:1: switching: "circuit": want cut-through or store-and-forward`,
		"routing: random":                        `f:1: routing: "random": want adaptive or ecmp`,
		"leaf:\n  rate: 400":                     `f:2: "400" is not a rate: want a number with its unit, such as 400 Gb/s or 50 GB/s`,
		"leaf:\n  latency: 250":                  `f:2: "250" is not a time: want a number with its unit, such as 250 ns or 1.5 us`,
		"leaf:\n  nodes: 8\nspine:\n  nodes: 12": "f:4: spine.nodes: 12 machines: want a multiple of the leaf's 8",
		"spine:\n  switches: 4\n  rate: 1 Gb/s\n  oversubscription: 2":                          "f:4: spine.oversubscription: follows from rate: want one of the two",
		"spine:\n  oversubscription: 0":                                                         "f:2: spine.oversubscription: 0: want 0.01 to 1000",
		"spine:\n  nodes: 64\ncore:\n  links: 2":                                                "f:4: core.switches: missing: want how many there are in a group",
		"spine:\n  nodes: 64\n  switches: 4\ncore:\n  switches: 6":                              "f:5: core.switches: 6: want a multiple of the 4 in a group of spine switches, so that each has its own",
		"core: {switches: 32}":                                                                  "f:1: spine.nodes: missing: the level above needs to know how many machines a spine joins",
		"topology: single-switch\nspine:\n  switches: 2":                                        "f:1: topology: a single switch has no level above: want rail-optimised or fat-tree",
		"nvlink-domain: 3\nleaf:\n  nodes: 4":                                                   "f:3: leaf.nodes: 4 machines: want a multiple of the NVLink domain's 3",
		"spine:\n  per-rail: true":                                                              "f:2: spine.per-rail: apart at the top: want a level at which they meet",
		"rails: [[1]]":                                                                          "f:1: rails: want the names of NETs, or a list of them for each rail",
		"nodes: &a 3\nleaf:\n  nodes: *b":                                                       "f:",
		"# all NETs but one\nrails: [mlx5_0, mlx5_1, mlx5_2, mlx5_3, mlx5_4]":                   "f:2: rails: NET mlx5_5 of dgx-h100 is on none: want all of the machine's on one",
		"rails:\n- [mlx5_0, mlx5_1, mlx5_2, mlx5_3, mlx5_4]\n- [mlx5_5, mlx5_6, mlx5_7]\n- ib0": "f:4: rails[2]: dgx-h100 has no NET ib0: want mlx5_0, mlx5_1, mlx5_2, mlx5_3, mlx5_4, mlx5_5, mlx5_6, mlx5_7",
		"spine:\n  nodes: 32":                                                                   "f:2: spine.nodes: room for 32 machines, and there are 64",
		"nvlink-domain: 5\nleaf:\n  nodes: 20":                                                  "f:1: nvlink-domain: 64 machines do not fill NVLink domains of 5",
		strings.Repeat("#", 70<<10):                                                             "f:1: too large for a fabric: want at most 64 KiB",
	} {
		s, err := fabric.Read([]byte(text), "f")
		if err == nil {
			_, err = cluster(t, s, "dgx-h100", 64)
		}
		if strings.HasSuffix(want, ":") || strings.HasSuffix(want, ": ") {
			assert.ErrorContains(t, err, want, text)
		} else {
			assert.EqualError(t, err, want, text)
		}
	}
	_, err := fabric.Open("torus")
	assert.ErrorContains(t, err, `unknown fabric "torus": want one of fat-tree, `)
	_, err = fabric.Open("nowhere.yaml")
	assert.ErrorIs(t, err, os.ErrNotExist)
}

// Whatever the text, reading ends in a fabric that joins machines, or in an
// error that names the file.
func FuzzRead(f *testing.F) {
	files, err := filepath.Glob("fabrics/*.yaml")
	require.NoError(f, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := fabric.Read(text, "f")
		if err == nil {
			var c *topo.Cluster
			if c, err = cluster(t, s, "gb200x4", min(s.Nodes, 40)); err == nil {
				c.Route(0, c.Ranks()-1, 0, 1)
				return
			}
		}
		require.True(t, strings.HasPrefix(err.Error(), "f:"), err)
	})
}
