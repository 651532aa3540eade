package cuda

import (
	"bytes"
	"errors"
	"slices"
	"strconv"

	"golang.org/x/sync/errgroup"

	"tutti/backend/cuda/driver"
	"tutti/kernels"
	"tutti/model"
)

// moduleKey says which kernels go together.
type moduleKey struct {
	datatype model.Datatype
	op       model.Redop
}

// name is that of the kernels' text. Whole numbers have the same bits in sums and
// products with a sign as without.
func (k moduleKey) name() string {
	signed := map[model.Datatype]model.Datatype{model.Uint8: model.Int8, model.Uint32: model.Int32, model.Uint64: model.Int64}
	d := k.datatype
	if s, whole := signed[d]; whole && (k.op == model.Sum || k.op == model.Prod) {
		d = s
	}
	return d.String() + "_" + k.op.String()
}

// module has the kernels of a datatype and operation that were loaded on one rank's
// GPU so far.
type module struct {
	parts   []*driver.Module
	kernels map[string]*driver.Kernel
}

// load makes kernels of a datatype and operation ready on all ranks. Calls do so by
// themselves, but not while work is captured or kernels wait for others.
func (c *Comm) load(d model.Datatype, op model.Redop, names ...string) ([]*module, error) {
	key := moduleKey{d, op}
	all := c.modules[key]
	if all == nil {
		all = make([]*module, len(c.ranks))
		for i := range all {
			all[i] = &module{}
		}
		c.modules[key] = all
	}
	return all, c.complete(all, key.name(), names)
}

// loadCommon does so with kernels that are the same for all datatypes.
func (c *Comm) loadCommon(names ...string) ([]*module, error) {
	all := make([]*module, len(c.ranks))
	for i, r := range c.ranks {
		if r.common == nil {
			r.common = &module{}
		}
		all[i] = r.common
	}
	return all, c.complete(all, "common", names)
}

// complete loads what is missing in the modules of all ranks, side by side.
func (c *Comm) complete(all []*module, text string, names []string) error {
	var missing []string
	for _, name := range names {
		if slices.ContainsFunc(all, func(m *module) bool { return m.kernels[name] == nil }) {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	ptx, err := kernels.PTX(text, missing...)
	if err != nil {
		return err
	}
	var group errgroup.Group
	for i, m := range all {
		group.Go(func() error { return m.add(c, ptx, i, missing) })
	}
	return group.Wait()
}

// add loads kernels on the GPU of a rank.
func (m *module) add(c *Comm, ptx []byte, rank int, names []string) error {
	part, err := c.ranks[rank].gpu.LoadModule(specialise(ptx, rank, len(c.ranks)))
	if err != nil {
		return err
	}
	m.parts = append(m.parts, part)
	if m.kernels == nil {
		m.kernels = map[string]*driver.Kernel{}
	}
	for _, name := range names {
		if m.kernels[name], err = part.Kernel(name); err != nil {
			return err
		}
	}
	return nil
}

func (m *module) unload() error {
	var errs []error
	for _, part := range m.parts {
		errs = append(errs, part.Unload())
	}
	return errors.Join(errs...)
}

// specialise puts numbers in the place of the names that kernels/comm.cuh leaves
// in the PTX.
func specialise(ptx []byte, rank, ranks int) []byte {
	ptx = bytes.ReplaceAll(ptx, []byte("TUTTI_RANK"), strconv.AppendInt(nil, int64(rank), 10))
	return bytes.ReplaceAll(ptx, []byte("TUTTI_COUNT"), strconv.AppendInt(nil, int64(ranks), 10))
}
