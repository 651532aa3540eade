package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// order lists the packages; each may import those before it and no other, so
// that data flows one way. The last ones may use libraries for the command line,
// tables and figures, and few others one of their own: a user of the simulator
// gets none of these.
var order = []string{
	"tutti/model/units", "tutti/model/splitmix", "tutti/model", "tutti/topo/xmltree", "tutti/topo", "tutti/topo/smi", "tutti/topo/fabric", "tutti/topo/draw", "tutti/topo/search",
	"tutti/model/profile", "tutti/model/tuning/nccl", "tutti/model/tuning/export", "tutti/model/schedule", "tutti/model/tuning",
	"tutti/model/schedule/draw", "tutti/model/schedule/file", "tutti/model/schedule/scheduletest",
	"tutti/sim/event", "tutti/sim", "tutti/sim/timeline", "tutti/backend/number", "tutti/backend", "tutti/backend/host", "tutti/kernels", "tutti/kernels/emulator",
	"tutti/backend/dynlib", "tutti/backend/cuda/driver", "tutti/backend/cuda", "tutti/backend/nccl", "tutti/backend/live", "tutti/backend/bench",
	"tutti/experiments", "tutti/experiments/readmetest", "tutti/experiments/rows", "tutti/experiments/traffic", "tutti/experiments/sweep", "tutti/experiments/calibrate", "tutti/experiments/compare", "tutti/experiments/winners", "tutti/experiments/nccllog", "tutti/experiments/figure", "tutti/experiments/firstlight", "tutti/experiments/hotkernels", "tutti/experiments/collectives",
	"tutti/notebooks", "tutti/cmd/tutti",
}

// allowed names what else comes from outside: fabrics and profiles are YAML, for
// which a kept library beats a reader of our own; pictures are SVG; profiles
// are fitted by Nelder and Mead's method as gonum has it; and ranks run side by
// side. Libraries of GPUs are opened without cgo by purego. None of these brings in more
// than itself.
var allowed = map[string][]string{
	"tutti/topo/fabric":         {"github.com/goccy/go-yaml"},
	"tutti/topo/draw":           {"github.com/ajstarks/svgo"},
	"tutti/model/profile":       {"github.com/goccy/go-yaml", "gonum.org/v1/gonum/optimize"},
	"tutti/model/schedule/draw": {"github.com/ajstarks/svgo"},
	"tutti/backend":             {"golang.org/x/sync/errgroup"},
	"tutti/backend/cuda":        {"golang.org/x/sync/errgroup"},
	"tutti/backend/dynlib":      {"github.com/ebitengine/purego"},
	"tutti/kernels":             {"github.com/klauspost/compress/zstd"},
}

func TestStructure(t *testing.T) {
	text, err := exec.Command("go", "list", "-json=ImportPath,Doc,Imports", "tutti/...").Output()
	require.NoError(t, err)
	pure := slices.Index(order, "tutti/experiments")
	for list := json.NewDecoder(strings.NewReader(string(text))); ; {
		var p struct {
			ImportPath, Doc string
			Imports         []string
		}
		if err := list.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else {
			require.NoError(t, err)
		}
		at := slices.Index(order, p.ImportPath)
		assert.GreaterOrEqual(t, at, 0, "%s has no place in the order", p.ImportPath)
		assert.NotEmpty(t, p.Doc, "%s has no package comment", p.ImportPath)
		for _, i := range p.Imports {
			if strings.HasPrefix(i, "tutti/") {
				assert.Less(t, slices.Index(order, i), at, "%s imports %s", p.ImportPath, i)
			} else if own := func(library string) bool { return i == library || strings.HasPrefix(i, library+"/") }; strings.Contains(i, ".") && !slices.ContainsFunc(allowed[p.ImportPath], own) {
				assert.GreaterOrEqual(t, at, pure, "%s imports %s", p.ImportPath, i)
			}
		}
	}
	module, err := os.ReadFile("../../go.mod")
	require.NoError(t, err)
	assert.NotContains(t, string(module), "replace", "go install must work")
}
