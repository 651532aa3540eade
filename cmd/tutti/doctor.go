package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"tutti/backend/cuda"
	"tutti/backend/cuda/driver"
	"tutti/backend/live"
	"tutti/backend/nccl"
	"tutti/topo"
)

func newDoctor() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Say what this host can run, and why not",
		Long: `Look for what running on GPUs needs: the driver, the GPUs, their access to one
another's memory, the kernels, NVML, NCCL, NVLink multicast and its lock. The exit
code is 1 if tutti run cannot use GPUs here.`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return examine(c.OutOrStdout()) },
	}
}

// errNoGPUs is the doctor's finding; what is missing stands in the report.
var errNoGPUs = errors.New("tutti run cannot use GPUs here; it runs on the host's memory (--backend host)")

// report writes one finding a line.
type report struct {
	to   io.Writer
	sick bool // of what running on GPUs needs
}

func (r *report) well(what, format string, args ...any) {
	fmt.Fprintf(r.to, "ok  %-14s %s\n", what, fmt.Sprintf(format, args...))
}

func (r *report) lacking(what string, err error) {
	fmt.Fprintf(r.to, "no  %-14s %s\n", what, strings.ReplaceAll(err.Error(), "\n", "\n                   "))
}

func (r *report) ill(what string, err error) {
	r.lacking(what, err)
	r.sick = true
}

// examine goes from the driver up; each part needs those before it.
func examine(to io.Writer) error {
	r := &report{to: to}
	gpus := r.gpus()
	if len(gpus) > 1 {
		r.kernels(gpus)
	} else if len(gpus) == 1 {
		r.ill("peers", errors.New("one GPU: a collective needs two"))
	}
	r.topology()
	if version, err := nccl.Version(); err != nil {
		r.lacking("NCCL", err)
	} else {
		r.well("NCCL", "%s, to compare with", version)
	}
	if err := cuda.UnlockMulticast(true, gpus); err != nil {
		r.lacking("multicast", err)
	} else if len(gpus) > 0 {
		r.well("multicast", "supported; used only when asked for")
	}
	for _, g := range gpus {
		if err := g.Close(); err != nil {
			return err
		}
	}
	if r.sick {
		return errNoGPUs
	}
	return nil
}

// gpus opens every GPU.
func (r *report) gpus() []*driver.GPU {
	version, err := driver.Version()
	if err != nil {
		r.ill("driver", err)
		return nil
	}
	r.well("driver", "runs CUDA up to %d.%d", version/1000, version%1000/10)
	n, err := driver.Count()
	if err != nil {
		r.ill("GPUs", err)
		return nil
	}
	var gpus []*driver.GPU
	for i := range n {
		g, err := driver.Open(i)
		if err != nil {
			r.ill(fmt.Sprintf("GPU %d", i), err)
			continue
		}
		gpus = append(gpus, g)
		text := fmt.Sprintf("%s at %s, compute capability %d.%d, %d multiprocessors, %d GiB", g.Name, g.BusID, g.SM/10, g.SM%10, g.Multiprocessors, g.Memory>>30)
		if g.SM < 90 {
			r.ill(fmt.Sprintf("GPU %d", i), fmt.Errorf("%s: the kernels need 9.0 or later", text))
			continue
		}
		r.well(fmt.Sprintf("GPU %d", i), "%s", text)
	}
	return gpus
}

// kernels joins the GPUs, which gives them access to one another, and loads
// kernels.
func (r *report) kernels(gpus []*driver.GPU) {
	comm, err := cuda.New(gpus[:min(len(gpus), 8)], cuda.Options{Scratch: 1 << 20})
	if err != nil {
		r.ill("peers", err)
		return
	}
	r.well("peers", "all GPUs reach one another's memory")
	r.well("kernels", "loaded")
	if err := comm.Close(); err != nil {
		r.ill("kernels", err)
	}
}

// topology reads the host as --machine live does.
func (r *report) topology() {
	version, err := live.DriverVersion()
	if err != nil {
		r.lacking("NVML", err)
		return
	}
	text, err := live.XML()
	if err != nil {
		r.lacking("topology", err)
		return
	}
	r.well("NVML", "driver %s", version)
	system, err := topo.ReadXML(bytes.NewReader(text), "live")
	if err != nil {
		r.lacking("topology", err)
		return
	}
	for i, a := range system.GPUs {
		for _, b := range system.GPUs[:i] {
			if p := system.Path(a, b); p.Type != topo.PathNVL {
				r.lacking("NVLink", fmt.Errorf("the path from GPU %d is %v: slower than NVLink", i, p.Type))
				return
			}
		}
	}
	r.well("topology", "%d GPUs, %d NICs", len(system.GPUs), len(system.NETs))
}
