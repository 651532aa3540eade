package topo

import (
	"embed"
	"fmt"
	"path"
	"strings"
)

//go:embed machines/*.xml
var machines embed.FS

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

// UnknownMachineError says that a name is neither a built-in machine nor a file's.
type UnknownMachineError string

func (e UnknownMachineError) Error() string {
	return fmt.Sprintf("unknown machine %q: want one of %s, or an NCCL topology FILE.xml", string(e), strings.Join(Machines(), ", "))
}

// Open returns the built-in machine of the given name, or reads the file if the
// name ends in .xml or has a slash. The error is an [UnknownMachineError] or
// [ReadFile]'s.
func Open(name string) (*System, error) {
	if strings.HasSuffix(name, ".xml") || strings.ContainsAny(name, `/\`) {
		return ReadFile(name)
	}
	f, err := machines.Open(path.Join("machines", name+".xml"))
	if err != nil {
		return nil, UnknownMachineError(name)
	}
	defer f.Close()
	return ReadXML(f, name)
}
