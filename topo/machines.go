package topo

import (
	"bytes"
	"embed"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
)

//go:embed machines/*.xml
var machines embed.FS

// aliases are further names of built-in machines: HGX boards are those of DGX
// machines, and hosts built on them have the same topology.
var aliases = map[string]string{
	"hgx-a100": "dgx-a100", "hgx-h100": "dgx-h100", "hgx-h200": "dgx-h200", "hgx-b200": "dgx-b200",
	"dgx-1": "dgx-1v", "nvl72": "gb200-nvl72", "gb200": "gb200x4",
}

// Machines lists the names of the built-in machines, sorted.
func Machines() []string {
	entries, err := machines.ReadDir("machines")
	if err != nil {
		panic(err) // the folder is in the binary
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = strings.TrimSuffix(e.Name(), ".xml")
	}
	return names
}

// Aliases lists the further names of a built-in machine, sorted.
func Aliases(name string) []string {
	var list []string
	for alias, of := range aliases {
		if of == name {
			list = append(list, alias)
		}
	}
	slices.Sort(list)
	return list
}

// UnknownMachineError says that a name is neither a built-in machine nor a file's.
type UnknownMachineError string

func (e UnknownMachineError) Error() string {
	return fmt.Sprintf("unknown machine %q: want one of %s, or an NCCL topology FILE.xml", string(e), strings.Join(Machines(), ", "))
}

// Open returns the built-in machine of the given name, or reads the file if the
// name ends in .xml or has a slash. The error is an [UnknownMachineError] or
// [ReadFile]'s.
func Open(name string) (*System, error) {
	if isFile(name) {
		return ReadFile(name)
	}
	text, err := XML(name)
	if err != nil {
		return nil, err
	}
	return ReadXML(bytes.NewReader(text), name)
}

func isFile(name string) bool {
	return strings.HasSuffix(name, ".xml") || strings.ContainsAny(name, `/\`)
}

// maxText is where [XML] stops reading a file, which is then too large for
// [ReadXML], too.
const maxText = 8 << 20

// XML returns the text of the file that [Open] reads.
func XML(name string) ([]byte, error) {
	if isFile(name) {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return io.ReadAll(io.LimitReader(f, maxText))
	}
	file := name
	if of, found := aliases[name]; found {
		file = of
	}
	text, err := machines.ReadFile(path.Join("machines", file+".xml"))
	if err != nil {
		return nil, UnknownMachineError(name)
	}
	return text, nil
}

// About returns what the comment at the head of a built-in machine's file says:
// what the machine is, and where the description comes from. Both are sentences,
// and empty for a file of the user's.
func About(name string) (machine, source string) {
	text, err := XML(name)
	if err != nil || isFile(name) {
		return "", ""
	}
	_, comment, _ := strings.Cut(string(text), "<!--")
	comment, _, _ = strings.Cut(comment, "-->")
	what, where, _ := strings.Cut(comment, "Source: ")
	return oneLine(what), oneLine(where)
}

// oneLine joins the words of a text by single spaces.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
