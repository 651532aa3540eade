package draw_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"tutti/topo"
	"tutti/topo/draw"
	"tutti/topo/fabric"
)

var update = flag.Bool("update", false, "write the golden pictures anew")

func open(t testing.TB, name string) *topo.System {
	s, err := topo.Open(name)
	require.NoError(t, err)
	return s
}

func machine(t require.TestingT, s *topo.System, routes ...draw.Route) string {
	var out bytes.Buffer
	require.NoError(t, draw.Machine(&out, s, routes...))
	return out.String()
}

// extent is where a text stands, by the widths of Liberation Sans.
type extent struct {
	text           string
	x1, y1, x2, y2 float64
}

// texts finds all text of a picture, and checks that the picture is sound XML
// and that all text is inside it, or in the box that its middle is in.
func texts(t require.TestingT, picture string) []extent {
	var boxes []extent
	size := regexp.MustCompile(`font-size:(\d+)px`)
	var list []extent
	var at *extent
	var width, height float64
	number := func(e xml.StartElement, name string) float64 {
		for _, a := range e.Attr {
			if a.Name.Local == name {
				v, err := strconv.ParseFloat(a.Value, 64)
				require.NoError(t, err)
				return v
			}
		}
		return 0
	}
	for d := xml.NewDecoder(strings.NewReader(picture)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		switch e := token.(type) {
		case xml.StartElement:
			switch e.Name.Local {
			case "svg":
				width, height = number(e, "width"), number(e, "height")
			case "rect":
				x, y := number(e, "x"), number(e, "y")
				boxes = append(boxes, extent{"", x, y, x + number(e, "width"), y + number(e, "height")})
			case "text":
				style := ""
				for _, a := range e.Attr {
					style += a.Value
				}
				high, err := strconv.ParseFloat(size.FindStringSubmatch(style)[1], 64)
				require.NoError(t, err)
				x, y := number(e, "x"), number(e, "y")
				at = &extent{x1: x, y1: y - 0.75*high, y2: y + 0.1*high, x2: high}
				if strings.Contains(style, "middle") {
					at.text = "middle"
				}
			}
		case xml.CharData:
			if at != nil {
				wide := 0.54 * at.x2 * float64(len([]rune(string(e))))
				centred := at.text == "middle"
				if centred {
					at.x1 -= wide / 2
				}
				at.x2, at.text = at.x1+wide, string(e)
				require.GreaterOrEqual(t, at.x1, 0., at.text)
				require.LessOrEqual(t, at.x2, width, at.text)
				require.LessOrEqual(t, at.y2, height, at.text)
				for _, b := range boxes[1:] { // but for the background
					x, y := (at.x1+at.x2)/2, (at.y1+at.y2)/2
					if centred && b.x1 <= x && x <= b.x2 && b.y1 <= y && y <= b.y2 {
						require.GreaterOrEqual(t, at.x1, b.x1, at.text)
					}
				}
				list = append(list, *at)
				at = nil
			}
		}
	}
	return list
}

// checkTexts finds texts that overlap.
func checkTexts(t require.TestingT, picture string) {
	list := texts(t, picture)
	require.NotEmpty(t, list)
	for i, a := range list {
		for _, b := range list[:i] {
			overlap := a.x1 < b.x2 && b.x1 < a.x2 && a.y1 < b.y2 && b.y1 < a.y2
			require.False(t, overlap, "%q and %q overlap", a.text, b.text)
		}
	}
}

// Every machine is drawn with no text over another, the same each time, with a
// box for each GPU and NIC, and with routes over it.
func TestMachines(t *testing.T) {
	for _, name := range topo.Machines() {
		s := open(t, name)
		picture := machine(t, s)
		checkTexts(t, picture)
		assert.Equal(t, picture, machine(t, s), name)
		for i := range s.GPUs {
			assert.Contains(t, picture, fmt.Sprintf(">GPU %d<", i), name)
		}
		checkTexts(t, machine(t, s, draw.Route{Label: "ring", Nodes: s.GPUs, Closed: true},
			draw.Route{Label: "out", Nodes: []int{s.NETs[0], s.GPUs[0], s.GPUs[1], s.NETs[len(s.NETs)-1]}}))
	}
}

// A picture's bytes are kept, so that they are the same on every machine.
func TestGolden(t *testing.T) {
	mesh, tray := open(t, "dgx-1v"), open(t, "gb200x4")
	for file, picture := range map[string]string{
		// The ring of the pairs of GPUs that two NVLinks join, and one of a tree's chains.
		"testdata/dgx-1v-ring.svg": machine(t, mesh,
			draw.Route{Label: "ring", Nodes: pick(mesh.GPUs, 0, 3, 2, 1, 5, 6, 7, 4), Closed: true},
			draw.Route{Label: "chain", Nodes: pick(mesh.GPUs, 2, 6, 4)}),
		"testdata/gb200x4-rings.svg": machine(t, tray,
			draw.Route{Label: "channel 0", Nodes: append([]int{tray.NETs[0]}, tray.GPUs...)},
			draw.Route{Label: "channel 1", Nodes: pick(tray.GPUs, 3, 2, 1, 0), Closed: true}),
	} {
		if *update {
			require.NoError(t, os.WriteFile(file, []byte(picture), 0o600))
		}
		want, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Equal(t, string(want), picture, "%s: if this is right, run go test ./topo/draw -update", file)
	}
}

func pick(list []int, places ...int) []int {
	var chosen []int
	for _, p := range places {
		chosen = append(chosen, list[p])
	}
	return chosen
}

func TestRouteErrors(t *testing.T) {
	s := open(t, "h200x2")
	for _, n := range []int{-1, len(s.Nodes), s.CPUs[0]} {
		err := draw.Machine(io.Discard, s, draw.Route{Label: "odd", Nodes: []int{s.GPUs[0], n}})
		assert.EqualError(t, err, fmt.Sprintf(`route "odd": node %d is neither a GPU nor a NET of h200x2`, n))
	}
}

// Every fabric is drawn with no text over another, whatever the machine and
// however many there are.
func TestClusters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(fabric.Names()).Draw(t, "fabric")
		s, err := fabric.Open(name)
		require.NoError(t, err)
		m := rapid.SampledFrom([]string{"dgx-h100", "aws-p5", "h200x4", "gb200-nvl72"}).Draw(t, "machine")
		nodes := rapid.IntRange(1, 4000).Draw(t, "nodes")
		if s.Machine != "" {
			m, nodes = s.Machine, max(1, min(nodes, s.Nodes)/s.Domain)*s.Domain
		}
		text, err := topo.XML(m)
		require.NoError(t, err)
		c, err := s.Cluster(text, m, nodes, 0)
		require.NoError(t, err)
		var out bytes.Buffer
		require.NoError(t, draw.Cluster(&out, c))
		checkTexts(t, out.String())
	})
}

// A ring between machines, over the picture of one of them.
func ExampleMachine() {
	s, err := topo.Open("dgx-h100")
	if err != nil {
		fmt.Println(err)
		return
	}
	ring := draw.Route{Label: "ring, channel 0", Nodes: []int{s.NETs[0]}}
	for i := range s.GPUs {
		ring.Nodes = append(ring.Nodes, s.GPUs[(8-i)%8]) // 0 7 6 5 4 3 2 1
	}
	ring.Nodes = append(ring.Nodes, s.NETs[1])
	var picture bytes.Buffer
	if err := draw.Machine(&picture, s, ring); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(strings.Count(picture.String(), "<polygon"), "arrows")
	// Output: 9 arrows
}

// Whatever machine can be read can be drawn.
func FuzzMachine(f *testing.F) {
	for _, name := range topo.Machines() {
		text, err := topo.XML(name)
		require.NoError(f, err)
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := topo.ReadXML(bytes.NewReader(text), "f")
		if err != nil {
			return
		}
		for d := xml.NewDecoder(strings.NewReader(machine(t, s, draw.Route{Label: "ring", Nodes: s.GPUs, Closed: true}))); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				return
			} else {
				require.NoError(t, err)
			}
		}
	})
}
