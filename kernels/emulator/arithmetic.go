package emulator

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"tutti/backend/number"
)

// valueType is what the last part of an instruction's name says of its operands.
type valueType struct {
	bytes         int
	signed, float bool
	brain         bool // bfloat16
}

func typeOf(name string) valueType {
	switch name {
	case "pred":
		return valueType{bytes: 8}
	case "bf16":
		return valueType{bytes: 2, float: true, brain: true}
	}
	t := valueType{signed: name[0] == 's', float: name[0] == 'f'}
	switch name[1:] {
	case "8":
		t.bytes = 1
	case "16":
		t.bytes = 2
	case "32":
		t.bytes = 4
	default:
		t.bytes = 8
	}
	return t
}

// cut returns the bits that a value of the type has.
func (t valueType) cut(v uint64) uint64 { return v << (64 - 8*t.bytes) >> (64 - 8*t.bytes) }

// extend returns the value of a signed integer.
func (t valueType) extend(v uint64) int64 { return int64(v<<(64-8*t.bytes)) >> (64 - 8*t.bytes) }

func (t valueType) real(v uint64) float64 {
	switch {
	case t.brain:
		return float64(number.BFloat16ToFloat32(uint16(v)))
	case t.bytes == 2:
		return float64(number.Float16ToFloat32(uint16(v)))
	case t.bytes == 4:
		return float64(math.Float32frombits(uint32(v)))
	default:
		return math.Float64frombits(v)
	}
}

// ofReal rounds to the type. Of what two operands of a type come to in float64,
// that is what the type's own arithmetic gives: float64 has more than twice the
// digits of float32.
func (t valueType) ofReal(f float64) uint64 {
	switch {
	case t.brain:
		return uint64(number.Float32ToBFloat16(float32(f)))
	case t.bytes == 2:
		return uint64(number.Float32ToFloat16(float32(f)))
	case t.bytes == 4:
		return uint64(math.Float32bits(float32(f)))
	default:
		return math.Float64bits(f)
	}
}

func truth(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// arithmetic compiles what computes a value from others.
func (k *kernel) arithmetic(parts, operands []string) (func(*lane), error) {
	name, ty := parts[0], parts[len(parts)-1]
	t := typeOf(ty)
	var from []operand
	for _, text := range operands[1:] {
		kind := ty
		if name == "shl" || name == "shr" || name == "bfi" || name == "bfe" {
			kind = "u64" // places of bits have a type of their own
		}
		v, err := k.operand(text, kind)
		if err != nil {
			return nil, err
		}
		from = append(from, v)
	}
	into := k.register(operands[0])
	set := func(f func(*lane) uint64) (func(*lane), error) {
		return func(l *lane) { l.registers[into] = f(l) }, nil
	}
	switch name {
	case "cvta":
		return set(from[0])
	case "cvt":
		return set(k.convert(typeOf(parts[len(parts)-2]), t, from[0]))
	case "not":
		if ty == "pred" {
			return set(func(l *lane) uint64 { return 1 - from[0](l) })
		}
		return set(func(l *lane) uint64 { return t.cut(^from[0](l)) })
	case "neg":
		return set(func(l *lane) uint64 { return t.cut(-from[0](l)) })
	case "selp":
		return set(func(l *lane) uint64 {
			if from[2](l) != 0 {
				return from[0](l)
			}
			return from[1](l)
		})
	case "setp":
		holds, err := comparison(parts[1], t)
		if err != nil {
			return nil, err
		}
		return set(func(l *lane) uint64 { return truth(holds(from[0](l), from[1](l))) })
	case "mad":
		return set(func(l *lane) uint64 { return t.cut(from[0](l)*from[1](l) + from[2](l)) })
	case "bfi":
		return set(func(l *lane) uint64 {
			mask := (uint64(1)<<from[3](l) - 1) << from[2](l)
			return t.cut(from[1](l)&^mask | from[0](l)<<from[2](l)&mask)
		})
	case "bfe":
		return set(func(l *lane) uint64 { return from[0](l) >> from[1](l) & (1<<from[2](l) - 1) })
	}
	f, err := operation(name, slices.Contains(parts, "wide"), slices.Contains(parts, "hi"), t)
	if err != nil {
		return nil, err
	}
	return set(func(l *lane) uint64 { return f(from[0](l), from[1](l)) })
}

func (k *kernel) convert(to, from valueType, v operand) func(*lane) uint64 {
	switch {
	case from.float && to.float:
		return func(l *lane) uint64 { return to.ofReal(from.real(v(l))) }
	case to.float && from.signed:
		return func(l *lane) uint64 { return to.ofReal(float64(from.extend(v(l)))) }
	case to.float:
		return func(l *lane) uint64 { return to.ofReal(float64(v(l))) }
	case from.signed:
		return func(l *lane) uint64 { return to.cut(uint64(from.extend(v(l)))) }
	default:
		return func(l *lane) uint64 { return to.cut(from.cut(v(l))) }
	}
}

// comparison returns setp's.
func comparison(name string, t valueType) (func(a, b uint64) bool, error) {
	// The order of a and b: -1, 0 or 1, and 2 where one is no number.
	order := func(a, b uint64) int {
		switch {
		case a == b:
			return 0
		case a < b:
			return -1
		default:
			return 1
		}
	}
	switch unsigned := order; {
	case t.float:
		order = func(a, b uint64) int {
			switch x, y := t.real(a), t.real(b); {
			case x < y:
				return -1
			case x > y:
				return 1
			case x == y:
				return 0
			default:
				return 2
			}
		}
	case t.signed:
		order = func(a, b uint64) int { return unsigned(uint64(t.extend(a))^1<<63, uint64(t.extend(b))^1<<63) }
	}
	holds := map[string][]int{"eq": {0}, "ne": {-1, 1}, "lt": {-1}, "le": {-1, 0}, "gt": {1}, "ge": {0, 1}}[name]
	if holds == nil {
		return nil, fmt.Errorf("no comparison %s is emulated", name)
	}
	return func(a, b uint64) bool { return slices.Contains(holds, order(a, b)) }, nil
}

// operation returns the operation of two operands.
func operation(name string, wide, high bool, t valueType) (func(a, b uint64) uint64, error) {
	if t.float {
		return real(name, t)
	}
	least := func(a, b uint64) bool { return a < b }
	if t.signed {
		least = func(a, b uint64) bool { return t.extend(a) < t.extend(b) }
	}
	switch name {
	case "add":
		return func(a, b uint64) uint64 { return t.cut(a + b) }, nil
	case "sub":
		return func(a, b uint64) uint64 { return t.cut(a - b) }, nil
	case "mul":
		switch {
		case high && t.bytes == 8 && !t.signed:
			return func(a, b uint64) uint64 { hi, _ := bits.Mul64(a, b); return hi }, nil
		case high:
			return nil, fmt.Errorf("this mul.hi is not emulated")
		case wide && t.signed:
			return func(a, b uint64) uint64 { return uint64(t.extend(a) * t.extend(b)) }, nil
		case wide:
			return func(a, b uint64) uint64 { return a * b }, nil
		}
		return func(a, b uint64) uint64 { return t.cut(a * b) }, nil
	case "div", "rem":
		return func(a, b uint64) uint64 {
			switch {
			case b == 0:
				return t.cut(math.MaxUint64)
			case t.signed && name == "div":
				return t.cut(uint64(t.extend(a) / t.extend(b)))
			case t.signed:
				return t.cut(uint64(t.extend(a) % t.extend(b)))
			case name == "div":
				return a / b
			default:
				return a % b
			}
		}, nil
	case "min":
		return func(a, b uint64) uint64 {
			if least(b, a) {
				return b
			}
			return a
		}, nil
	case "max":
		return func(a, b uint64) uint64 {
			if least(a, b) {
				return b
			}
			return a
		}, nil
	case "and":
		return func(a, b uint64) uint64 { return a & b }, nil
	case "or":
		return func(a, b uint64) uint64 { return a | b }, nil
	case "xor":
		return func(a, b uint64) uint64 { return a ^ b }, nil
	case "shl":
		return func(a, b uint64) uint64 { return t.cut(a << b) }, nil
	case "shr":
		if t.signed {
			return func(a, b uint64) uint64 { return t.cut(uint64(t.extend(a) >> b)) }, nil
		}
		return func(a, b uint64) uint64 { return a >> b }, nil
	}
	return nil, fmt.Errorf("%s is not emulated", name)
}

// real returns the operation of two floating-point operands.
func real(name string, t valueType) (func(a, b uint64) uint64, error) {
	operations := map[string]func(a, b float64) float64{
		"add": func(a, b float64) float64 { return a + b },
		"sub": func(a, b float64) float64 { return a - b },
		"mul": func(a, b float64) float64 { return a * b },
		"div": func(a, b float64) float64 { return a / b },
		"min": func(a, b float64) float64 {
			if a != a || b < a {
				return b
			}
			return a
		},
		"max": func(a, b float64) float64 {
			if a != a || b > a {
				return b
			}
			return a
		},
	}
	f := operations[name]
	if f == nil {
		return nil, fmt.Errorf("%s of floating-point numbers is not emulated", name)
	}
	return func(a, b uint64) uint64 { return t.ofReal(f(t.real(a), t.real(b))) }, nil
}
