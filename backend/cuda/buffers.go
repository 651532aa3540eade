package cuda

import (
	"errors"
	"fmt"

	"tutti/backend"
	"tutti/backend/cuda/driver"
	"tutti/model/schedule"
	"tutti/model/units"
)

// Buffers are the inputs and outputs of a call's ranks in the memory of GPUs.
type Buffers struct {
	Call schedule.Task
	// GPUs has that of each rank.
	GPUs  []*driver.GPU
	sides [][2]driver.Pointer
	owned []allocation
}

type allocation struct {
	gpu *driver.GPU
	p   driver.Pointer
}

// Alloc takes memory of a rank, set to zero; Close frees it.
func (b *Buffers) Alloc(rank int, bytes int64) (driver.Pointer, error) {
	g := b.GPUs[rank]
	bytes = max(packBytes, bytes)
	p, err := g.Alloc(bytes)
	if err != nil {
		return 0, err
	}
	b.owned = append(b.owned, allocation{g, p})
	return p, g.Fill(p, 0, bytes)
}

// Place finds memory for all buffers; alloc returns memory of a rank.
func (b *Buffers) Place(alloc func(rank int, bytes int64) (driver.Pointer, error)) error {
	size := int64(b.Call.Datatype.Size())
	b.sides = make([][2]driver.Pointer, b.Call.Ranks)
	for rank := range b.sides {
		in, out := b.Call.Input(rank).Len()*size, b.Call.Output(rank).Len()*size
		var err error
		sides := &b.sides[rank]
		if i, o, together := backend.Overlap(b.Call, rank); together {
			p, err := alloc(rank, max(i*size+in, o*size+out))
			if err != nil {
				return err
			}
			*sides = [2]driver.Pointer{p + driver.Pointer(i*size), p + driver.Pointer(o*size)}
			continue
		}
		if sides[backend.Input], err = alloc(rank, in); err != nil {
			return err
		}
		if sides[backend.Output], err = alloc(rank, out); err != nil {
			return err
		}
	}
	return nil
}

// Side returns where a buffer of every rank begins.
func (b *Buffers) Side(side backend.Side) []driver.Pointer {
	all := make([]driver.Pointer, len(b.sides))
	for rank, sides := range b.sides {
		all[rank] = sides[side]
	}
	return all
}

// part returns where bytes of a buffer lie.
func (b *Buffers) part(rank int, side backend.Side, at units.Bytes, bytes int) (driver.Pointer, error) {
	if rank < 0 || rank >= b.Call.Ranks {
		return 0, fmt.Errorf("rank %d: want one of %d", rank, b.Call.Ranks)
	}
	if has := b.bytes(rank, side); at < 0 || int64(at)+int64(bytes) > has {
		return 0, fmt.Errorf("bytes %d to %d of rank %d's buffer, which has %d", at, int64(at)+int64(bytes), rank, has)
	}
	return b.sides[rank][side] + driver.Pointer(at), nil
}

func (b *Buffers) bytes(rank int, side backend.Side) int64 {
	return side.Of(b.Call, rank).Len() * int64(b.Call.Datatype.Size())
}

// Write implements [backend.Execution].
func (b *Buffers) Write(rank int, side backend.Side, at units.Bytes, data []byte) error {
	p, err := b.part(rank, side, at, len(data))
	if err != nil {
		return err
	}
	return b.GPUs[rank].Put(p, data)
}

// Read implements [backend.Execution].
func (b *Buffers) Read(rank int, side backend.Side, at units.Bytes, into []byte) error {
	p, err := b.part(rank, side, at, len(into))
	if err != nil {
		return err
	}
	return b.GPUs[rank].Get(into, p)
}

// Repeat implements [backend.Repeater]: the GPU copies what it has, twice as much
// each time.
func (b *Buffers) Repeat(rank int, side backend.Side, pattern []byte) error {
	to, err := b.part(rank, side, 0, 0)
	if err != nil {
		return err
	}
	g, all := b.GPUs[rank], b.bytes(rank, side)
	have := min(int64(len(pattern)), all)
	if err := g.Put(to, pattern[:have]); err != nil {
		return err
	}
	for have > 0 && have < all {
		n := min(have, all-have)
		if err := g.Copy(to+driver.Pointer(have), to, n); err != nil {
			return err
		}
		have += n
	}
	return g.Sync()
}

// Close implements [backend.Execution].
func (b *Buffers) Close() error {
	var errs []error
	for _, a := range b.owned {
		errs = append(errs, a.gpu.Free(a.p))
	}
	b.owned = nil
	return errors.Join(errs...)
}
