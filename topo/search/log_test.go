package search_test

import (
	"bufio"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tutti/topo"
	"tutti/topo/search"
)

// What NCCL logged on real machines is found again: the system with its paths,
// graphs, and the rings and trees of every rank. (NVLS was off.)
func TestLogs(t *testing.T) {
	for _, c := range []struct {
		log         string
		nodes, gpus int
	}{
		{"log-h200x4-single-node.txt", 1, 4},
		{"log-sockets-n8g4.txt", 8, 4},
		{"log-sockets-n14g1.txt", 14, 1},
	} {
		t.Run(c.log, func(t *testing.T) {
			cluster := cluster(t, "../testdata/h200x4-live.xml", c.nodes, c.gpus)
			var text strings.Builder
			seen := cluster.Machine.Restrict(c.gpus, c.nodes > 1)
			require.NoError(t, topo.Dump(&text, seen))
			g := search.Find(cluster, search.Options{NoNVLS: true})
			require.NoError(t, search.WriteNCCL(&text, cluster, g, true))
			got := strings.Split(text.String(), "\n")
			compared := 0
			for _, want := range told(t, "testdata/"+c.log) {
				compared++
				assert.Contains(t, got, want)
			}
			assert.Greater(t, compared, 15)
		})
	}
}

// told lists the lines of a log that tutti has to give, too.
func told(t *testing.T, file string) (lines []string) {
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	pattern := []string{"RING  ", "TREE  "}
	for text := bufio.NewScanner(f); text.Scan(); {
		line := text.Text()
		word, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case word == "Pattern":
			lines = append(lines, pattern[0]+line)
			pattern = pattern[1:]
		case slices.Contains([]string{"===", "+", "rank"}, word), strings.Contains(line, " :GPU/"), strings.Contains(line, " : GPU/"),
			strings.Contains(line, " : NET/"), strings.HasPrefix(line, "CPU/"):
			lines = append(lines, line)
		}
	}
	return lines
}
