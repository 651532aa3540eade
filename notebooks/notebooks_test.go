package notebooks

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write outputs and figures anew")

// notebook is the part of the format (nbformat 4) that is read and written here.
type notebook struct {
	Cells         []*cell         `json:"cells"`
	Metadata      json.RawMessage `json:"metadata"`
	Format        int             `json:"nbformat"`
	FormatVersion int             `json:"nbformat_minor"`
}

type cell struct {
	Kind     string          `json:"cell_type"`
	Count    *int            `json:"execution_count,omitempty"`
	ID       string          `json:"id"`
	Metadata json.RawMessage `json:"metadata"`
	Outputs  *[]output       `json:"outputs,omitempty"`
	Source   []string        `json:"source"`
}

type output struct {
	Name string   `json:"name"`
	Kind string   `json:"output_type"`
	Text []string `json:"text"`
}

// Every cell runs, prints what stands below it, and draws the figures that are here;
// and every figure that the text shows is drawn.
func TestNotebooks(t *testing.T) {
	names, err := filepath.Glob("*.ipynb")
	require.NoError(t, err)
	require.NotEmpty(t, names)
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			var n notebook
			require.NoError(t, json.Unmarshal(text, &n))
			folder := filepath.Join(t.TempDir(), "notebooks") // with what cells read beside it
			require.NoError(t, os.Mkdir(folder, 0o755))
			here, err := filepath.Abs("../experiments")
			require.NoError(t, err)
			require.NoError(t, os.Symlink(here, filepath.Join(folder, "../experiments")))
			n.run(t, folder)
			drawn, err := filepath.Glob(filepath.Join(folder, "*.svg"))
			require.NoError(t, err)
			for _, path := range drawn {
				figure, err := os.ReadFile(path)
				require.NoError(t, err)
				keep(t, filepath.Base(path), figure)
				assert.Contains(t, string(text), "]("+filepath.Base(path)+")", "a figure that is not shown")
			}
			var out bytes.Buffer
			write := json.NewEncoder(&out)
			write.SetIndent("", " ")
			write.SetEscapeHTML(false)
			require.NoError(t, write.Encode(n))
			keep(t, name, out.Bytes())
		})
	}
}

// keep compares a file with what it should be, or writes it.
func keep(t *testing.T, name string, want []byte) {
	if *update {
		require.NoError(t, os.WriteFile(name, want, 0o644))
	}
	have, err := os.ReadFile(name)
	require.NoError(t, err)
	assert.Equal(t, string(want), string(have), "%s: if the change is meant: go test ./notebooks -update", name)
}

// run runs the cells in a folder, one after another, and keeps what they print.
func (n *notebook) run(t *testing.T, folder string) {
	count := 0
	declared := map[string]string{}
	for _, c := range n.Cells {
		if c.Kind != "code" {
			continue
		}
		count++
		number := count
		c.Count, c.Outputs = &number, &[]output{}
		before, body, runs := strings.Cut(strings.Join(c.Source, ""), "%%\n")
		if !runs { // of GoNB's own commands only
			require.True(t, strings.HasPrefix(before, "!*go mod edit"), before)
			continue
		}
		printed := execute(t, folder, fmt.Sprintf("cell%d", count), program(t, before, body, declared))
		if printed != "" {
			*c.Outputs = append(*c.Outputs, output{"stdout", "stream", strings.SplitAfter(strings.TrimSuffix(printed, "\n"), "\n")})
		}
	}
}

// program makes a program of a cell as GoNB does: functions of cells before it are
// there, too, and imports that nothing uses are not.
func program(t *testing.T, before, body string, declared map[string]string) []byte {
	all := token.NewFileSet()
	file, err := parser.ParseFile(all, "cell.go", "package main\n"+before, 0)
	require.NoError(t, err)
	imports := map[string]string{}
	for _, i := range file.Imports {
		path, err := strconv.Unquote(i.Path.Value)
		require.NoError(t, err)
		imports[path[strings.LastIndex(path, "/")+1:]] = path
	}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			var text bytes.Buffer
			require.NoError(t, format.Node(&text, all, f))
			declared[f.Name.Name] = text.String()
		}
	}
	code := "func main() {\n" + body + "\n}\n"
	for _, name := range sorted(declared) {
		if strings.Contains(code, name+"(") {
			code += declared[name] + "\n"
		}
	}
	text := "package main\n"
	for _, name := range sorted(imports) {
		if strings.Contains(code, name+".") {
			text += "import " + strconv.Quote(imports[name]) + "\n"
		}
	}
	return []byte(text + code)
}

func sorted(m map[string]string) (names []string) {
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// execute builds a program within the module and runs it in a folder.
func execute(t *testing.T, folder, name string, source []byte) (printed string) {
	file, binary := filepath.Join(t.TempDir(), name+".go"), filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(file, source, 0o644))
	text, err := exec.Command("go", "build", "-o", binary, file).CombinedOutput()
	require.NoError(t, err, "%s\n%s", text, source)
	cell := exec.Command(binary)
	cell.Dir = folder
	text, err = cell.CombinedOutput()
	require.NoError(t, err, "%s", text)
	return string(text)
}
