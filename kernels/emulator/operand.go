package emulator

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// operand is where an instruction gets a value from.
type operand func(*lane) uint64

var specials = map[string]operand{
	"%tid.x":       func(l *lane) uint64 { return uint64(l.thread) },
	"%ntid.x":      func(l *lane) uint64 { return uint64(l.block.threads) },
	"%ctaid.x":     func(l *lane) uint64 { return uint64(l.block.number) },
	"%nctaid.x":    func(l *lane) uint64 { return uint64(len(l.block.grid.blocks)) },
	"%globaltimer": func(l *lane) uint64 { return uint64(l.machine.steps) },
}

// operand compiles a register, a number or a symbol of a type.
func (k *kernel) operand(text, ty string) (operand, error) {
	if special, ok := specials[text]; ok {
		return special, nil
	}
	if s, ok := k.symbols[text]; ok {
		if s.shared {
			return func(l *lane) uint64 { return l.block.shared + s.offset }, nil
		}
		return func(l *lane) uint64 { return l.block.grid.params + s.offset }, nil
	}
	if v, ok, err := literal(text, ty); ok {
		return func(*lane) uint64 { return v }, err
	}
	r := k.register(text)
	return func(l *lane) uint64 { return l.registers[r] }, nil
}

// literal reads a number of a type, if text is one.
func literal(text, ty string) (v uint64, ok bool, err error) {
	switch {
	case strings.HasPrefix(text, "0f") || strings.HasPrefix(text, "0d"):
		v, err = strconv.ParseUint(text[2:], 16, 64)
	case text[0] == '-' || text[0] >= '0' && text[0] <= '9':
		var signed int64
		if signed, err = strconv.ParseInt(text, 0, 64); err != nil {
			v, err = strconv.ParseUint(text, 0, 64)
		} else {
			v = typeOf(ty).cut(uint64(signed))
		}
	default:
		return 0, false, nil
	}
	if ty == "pred" { // true is any number but 0
		v = truth(v != 0)
	}
	return v, true, err
}

// place compiles [register+offset] or [symbol+offset].
func (k *kernel) place(text string) (operand, error) {
	inner := strings.Trim(text, "[]")
	base, offset, _ := strings.Cut(inner, "+")
	at, err := k.operand(base, "u64")
	if err != nil || offset == "" {
		return at, err
	}
	by, err := strconv.ParseInt(offset, 0, 64)
	return func(l *lane) uint64 { return at(l) + uint64(by) }, err
}

// access returns the type of a load or store, and how many values it moves.
func access(parts []string) (t valueType, values int, err error) {
	values = 1
	for _, part := range parts[1:] {
		switch part {
		case "local", "param":
			if parts[0] == "st" || part == "local" {
				return t, 0, fmt.Errorf("no %s memory is emulated", part)
			}
		case "v2":
			values = 2
		case "v4":
			values = 4
		}
	}
	return typeOf(parts[len(parts)-1]), values, nil
}

func (k *kernel) load(parts, operands []string) (func(*lane), error) {
	t, values, err := access(parts)
	if err != nil {
		return nil, err
	}
	at, err := k.place(operands[1])
	if err != nil {
		return nil, err
	}
	into := vector(operands[0])
	registers := make([]int, values)
	for i := range registers {
		registers[i] = k.register(into[i])
	}
	wide := strings.HasPrefix(into[0], "%rd") // a register of 64 bits
	return func(l *lane) {
		address := at(l)
		if _, l.err = l.machine.at(address, values*t.bytes); l.err != nil {
			return
		}
		for i, r := range registers {
			var v uint64
			v, l.err = l.machine.load(address+uint64(i*t.bytes), t.bytes)
			if t.signed {
				if v = uint64(t.extend(v)); !wide {
					v = typeOf("u32").cut(v)
				}
			}
			l.registers[r] = v
		}
	}, nil
}

func (k *kernel) store(parts, operands []string) (func(*lane), error) {
	t, values, err := access(parts)
	if err != nil {
		return nil, err
	}
	at, err := k.place(operands[0])
	if err != nil {
		return nil, err
	}
	from := make([]operand, values)
	for i, text := range vector(operands[1]) {
		if from[i], err = k.operand(text, parts[len(parts)-1]); err != nil {
			return nil, err
		}
	}
	return func(l *lane) {
		address := at(l)
		if _, l.err = l.machine.at(address, values*t.bytes); l.err != nil {
			return
		}
		for i, v := range from {
			l.err = l.machine.store(address+uint64(i*t.bytes), t.bytes, v(l))
		}
	}, nil
}

// mbarrier compiles barriers in shared memory, 8 bytes: how many are to arrive, how many
// of them have still to, and the parity of the phase.
func (k *kernel) mbarrier(what string, operands []string) (func(*lane), error) {
	place := slices.IndexFunc(operands, func(o string) bool { return o[0] == '[' })
	at, err := k.place(operands[place])
	if err != nil {
		return nil, err
	}
	value := func(*lane) uint64 { return 0 }
	if len(operands) > place+1 {
		if value, err = k.operand(operands[place+1], "u32"); err != nil {
			return nil, err
		}
	}
	if what == "init" {
		return func(l *lane) { l.err = l.machine.store(at(l), 8, value(l)|value(l)<<16) }, nil
	}
	into := k.register(operands[0])
	return func(l *lane) {
		var state uint64
		if state, l.err = l.machine.load(at(l), 8); l.err != nil {
			return
		}
		all, due, parity := state&0xffff, state>>16&0xffff, state>>32
		if what == "test_wait" {
			l.registers[into] = truth(parity != value(l))
			return
		}
		if due--; due == 0 {
			due, parity = all, 1-parity
		}
		l.err = l.machine.store(at(l), 8, all|due<<16|parity<<32)
	}, nil
}

// move compiles mov, which also packs registers into one and unpacks them.
func (k *kernel) move(ty string, operands []string) (func(*lane), error) {
	into, from := vector(operands[0]), vector(operands[1])
	if len(into) > 1 {
		v, err := k.operand(from[0], ty)
		bits := typeOf(ty).bytes * 8 / len(into)
		var registers []int
		for _, name := range into {
			registers = append(registers, k.register(name))
		}
		return func(l *lane) {
			all := v(l)
			for i, r := range registers {
				l.registers[r] = all >> (i * bits) & (1<<bits - 1)
			}
		}, err
	}
	register, bits := k.register(into[0]), typeOf(ty).bytes*8/len(from)
	var values []operand
	for _, text := range from {
		v, err := k.operand(text, ty)
		if err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	return func(l *lane) {
		var all uint64
		for i, v := range values {
			all |= v(l) << (i * bits)
		}
		l.registers[register] = all
	}, nil
}
