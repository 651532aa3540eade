package model

import "tutti/model/units"

// Datatype is the type of a buffer's elements.
type Datatype int

// The datatypes, by NCCL's and nccl-tests' names.
const (
	Int8 Datatype = iota
	Uint8
	Int32
	Uint32
	Int64
	Uint64
	Float16
	Float32
	Float64
	BFloat16
)

var datatypeNames = []string{"int8", "uint8", "int32", "uint32", "int64", "uint64", "half", "float", "double", "bfloat16"}

var datatypeSizes = []units.Bytes{1, 1, 4, 4, 8, 8, 2, 4, 8, 2}

// String returns nccl-tests' name, as in "float" and "half".
func (d Datatype) String() string { return name(datatypeNames, d) }

// ParseDatatype reads a name that [Datatype.String] writes, or float16,
// float32 or float64; the error lists nccl-tests' names.
func ParseDatatype(s string) (Datatype, error) {
	switch s {
	case "float16":
		return Float16, nil
	case "float32":
		return Float32, nil
	case "float64":
		return Float64, nil
	}
	return parse[Datatype]("datatype", datatypeNames, s)
}

// Datatypes lists every datatype, in order.
func Datatypes() []Datatype { return all[Datatype](datatypeNames) }

// Size returns the bytes of one element.
func (d Datatype) Size() units.Bytes { return datatypeSizes[d] }

// Redop is the operation that a reduction combines elements by.
type Redop int

// The operations, by nccl-tests' names.
const (
	Sum Redop = iota
	Prod
	Min
	Max
	Avg
)

var redopNames = []string{"sum", "prod", "min", "max", "avg"}

// String returns the lower-case name, as in "sum".
func (o Redop) String() string { return name(redopNames, o) }

// ParseRedop reads a name that [Redop.String] writes; the error lists them.
func ParseRedop(s string) (Redop, error) { return parse[Redop]("operation", redopNames, s) }

// Redops lists every operation, in order.
func Redops() []Redop { return all[Redop](redopNames) }
