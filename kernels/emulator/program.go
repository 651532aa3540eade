package emulator

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Program is a module of PTX.
type Program struct{ kernels map[string]*kernel }

// kernel is an entry of a module.
type kernel struct {
	name            string
	threads         int // at the most, in a block
	params, shared  int // bytes
	registers       int
	code            []instruction
	registerNumbers map[string]int
	symbols         map[string]symbol
	err             error // why it cannot be run
}

// symbol is a name that stands for an address.
type symbol struct {
	shared bool // and not a parameter
	offset uint64
}

// kind tells what an instruction does to the flow of control.
type kind int

const (
	plain kind = iota
	branch
	end
	barrier // bar.sync, barrier.cta.sync or .arrive
	meeting // bar.warp.sync, of all lanes
	vote    // vote.sync.all.pred
	turn    // griddepcontrol.wait
)

type instruction struct {
	text    string
	kind    kind
	guard   int // a predicate's register, or -1
	negated bool
	run     func(*lane) // of plain ones
	target  int         // of branches
	value   operand     // of votes, and the number of a barrier
	into    int
	count   operand // threads that meet at a barrier; nil for all of the block
	arrives bool    // at a barrier, without waiting for the others
}

var (
	comment = regexp.MustCompile(`//[^\n]*`)
	entry   = regexp.MustCompile(`\.visible \.entry (\w+)\(\s*\.param \.align \d+ \.b8 (\w+)\[(\d+)\]\s*\)`)
	room    = regexp.MustCompile(`\.shared \.align \d+ \.b8 (\w+)\[(\d+)\]`)
	threads = regexp.MustCompile(`\.maxntid (\d+)`)
	guard   = regexp.MustCompile(`^@(!?)(\S+)\s+`)
	label   = regexp.MustCompile(`^\s*(\$?\w+):`)
)

// Parse reads a module. A kernel with an instruction that is not known can be
// there, but not launched.
func Parse(ptx []byte) (*Program, error) {
	text := comment.ReplaceAllString(string(ptx), "")
	p := &Program{kernels: map[string]*kernel{}}
	for {
		head := entry.FindStringSubmatchIndex(text)
		if head == nil {
			return p, nil
		}
		k := &kernel{name: text[head[2]:head[3]], threads: 1024, registerNumbers: map[string]int{}, symbols: map[string]symbol{text[head[4]:head[5]]: {}}}
		k.params, _ = strconv.Atoi(text[head[6]:head[7]])
		for _, s := range room.FindAllStringSubmatch(string(ptx), -1) { // of all kernels
			if _, known := k.symbols[s[1]]; !known {
				bytes, _ := strconv.Atoi(s[2])
				k.symbols[s[1]] = symbol{true, uint64(k.shared)}
				k.shared += (bytes + 15) / 16 * 16
			}
		}
		rest := text[head[1]:]
		open := strings.IndexByte(rest, '{')
		if n := threads.FindStringSubmatch(rest[:max(0, open)]); n != nil {
			k.threads, _ = strconv.Atoi(n[1])
		}
		close := strings.Index(rest, "\n}")
		if open < 0 || close < open {
			return nil, fmt.Errorf("%s has no body", k.name)
		}
		k.err = k.compile(rest[open+1 : close])
		p.kernels[k.name] = k
		text = rest[close:]
	}
}

// compile makes instructions of a kernel's body.
func (k *kernel) compile(body string) error {
	labels, branches := map[string]int{}, map[int]string{}
	for {
		if body = strings.TrimSpace(body); body == "" {
			break
		}
		if l := label.FindStringSubmatch(body); l != nil {
			labels[l[1]] = len(k.code)
			body = body[len(l[0]):]
			continue
		}
		if body[0] == '{' || body[0] == '}' { // a scope
			body = body[1:]
			continue
		}
		statement, rest, found := strings.Cut(body, ";")
		if !found {
			return fmt.Errorf("%q does not end", body)
		}
		if body = rest; statement[0] == '.' || strings.TrimSpace(statement) == "" {
			continue
		}
		i, to, err := k.instruction(strings.Join(strings.Fields(statement), " "))
		if err != nil {
			return fmt.Errorf("%q: %w", statement, err)
		}
		if i.kind == branch {
			branches[len(k.code)] = to
		}
		k.code = append(k.code, i)
	}
	for at, to := range branches {
		target, known := labels[to]
		if !known {
			return fmt.Errorf("no label %s", to)
		}
		k.code[at].target = target
	}
	k.code = append(k.code, instruction{text: "end", kind: end, guard: -1})
	k.registers = len(k.registerNumbers)
	return nil
}

// instruction compiles one, and returns the label that a branch goes to.
func (k *kernel) instruction(text string) (i instruction, to string, err error) {
	i = instruction{text: text, guard: -1}
	if g := guard.FindStringSubmatch(text); g != nil {
		i.guard, i.negated = k.register(g[2]), g[1] == "!"
		text = text[len(g[0]):]
	}
	name, rest, _ := strings.Cut(text, " ")
	parts, operands := strings.Split(name, "."), split(rest)
	switch parts[0] {
	case "bra":
		i.kind = branch
		return i, operands[0], nil
	case "ret", "exit":
		i.kind = end
	case "bar", "barrier":
		if parts[1] == "warp" {
			i.kind = meeting
			break
		}
		i.kind, i.arrives = barrier, parts[len(parts)-1] == "arrive"
		if i.value, err = k.operand(operands[0], "u32"); err == nil && len(operands) > 1 {
			i.count, err = k.operand(operands[1], "u32")
		}
	case "griddepcontrol":
		if parts[1] == "wait" {
			i.kind = turn
		} else {
			i.run = func(*lane) {}
		}
	case "vote":
		i.kind, i.into = vote, k.register(operands[0])
		i.value, err = k.operand(operands[1], parts[len(parts)-1])
	case "ld":
		i.run, err = k.load(parts, operands)
	case "st":
		i.run, err = k.store(parts, operands)
	case "mbarrier":
		i.run, err = k.mbarrier(parts[1], operands)
	case "mov":
		i.run, err = k.move(parts[1], operands)
	default:
		i.run, err = k.arithmetic(parts, operands)
	}
	return i, "", err
}

// split cuts operands apart at the commas that are not in braces.
func split(text string) (list []string) {
	depth, begin := 0, 0
	for at, c := range text {
		switch c {
		case '{':
			depth++
		case '}':
			depth--
		case ',':
			if depth == 0 {
				list = append(list, strings.TrimSpace(text[begin:at]))
				begin = at + 1
			}
		}
	}
	return append(list, strings.TrimSpace(text[begin:]))
}

// vector takes {a, b} apart; what has no braces is one.
func vector(text string) []string {
	if inner, ok := strings.CutPrefix(text, "{"); ok {
		return split(strings.TrimSuffix(inner, "}"))
	}
	return []string{text}
}

// register returns a register's number.
func (k *kernel) register(name string) int {
	n, known := k.registerNumbers[name]
	if !known {
		n = len(k.registerNumbers)
		k.registerNumbers[name] = n
	}
	return n
}
