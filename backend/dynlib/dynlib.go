// Package dynlib opens a shared library while the program runs and binds its
// functions, so that tutti builds without cgo and works without the library.
package dynlib

import (
	"fmt"
	"reflect"
	"strings"
)

// Open opens the first of names that is there and sets every field of the
// struct that functions points to: each is a func with the tag `c:"symbol"`. A
// field tagged `c:"symbol,optional"` stays nil where the library lacks the
// symbol.
//
// The error says which library could not be opened and why, or which symbols it
// lacks.
func Open(functions any, names ...string) error {
	var reasons []string
	for _, name := range names {
		handle, err := open(name)
		if err != nil {
			reasons = append(reasons, err.Error())
			continue
		}
		return bind(functions, name, handle)
	}
	return fmt.Errorf("cannot open %s: %s", names[0], strings.Join(reasons, "; "))
}

func bind(functions any, name string, handle uintptr) error {
	table := reflect.ValueOf(functions).Elem()
	var missing []string
	for i := range table.NumField() {
		symbol, option, _ := strings.Cut(table.Type().Field(i).Tag.Get("c"), ",")
		address, err := lookup(handle, symbol)
		if err == nil {
			register(table.Field(i).Addr().Interface(), address)
		} else if option != "optional" {
			missing = append(missing, symbol)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%s lacks %s: want a newer version", name, strings.Join(missing, ", "))
	}
	return nil
}
