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
// tables and figures: a user of the simulator gets none of these.
var order = []string{
	"tutti/model/units", "tutti/model", "tutti/topo", "tutti/topo/search",
	"tutti/model/profile", "tutti/model/tuning", "tutti/model/schedule",
	"tutti/sim/event", "tutti/sim", "tutti/backend", "tutti/kernels",
	"tutti/backend/dynlib", "tutti/backend/cuda/driver", "tutti/backend/cuda", "tutti/backend/nccl", "tutti/backend/live", "tutti/backend/bench",
	"tutti/experiments", "tutti/experiments/rows", "tutti/experiments/sweep", "tutti/experiments/figure", "tutti/experiments/firstlight",
	"tutti/notebooks", "tutti/cmd/tutti",
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
			} else if strings.Contains(i, ".") && p.ImportPath != "tutti/backend/dynlib" { // which needs purego
				assert.GreaterOrEqual(t, at, pure, "%s imports %s", p.ImportPath, i)
			}
		}
	}
	module, err := os.ReadFile("../../go.mod")
	require.NoError(t, err)
	assert.NotContains(t, string(module), "replace", "go install must work")
}
