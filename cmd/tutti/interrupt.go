package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// untilInterrupted returns a context that ends when the user or the scheduler ends
// the program. A second time ends it the hard way.
func untilInterrupted(c *cobra.Command) (ctx context.Context, stop context.CancelFunc) {
	ctx, stop = signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// unless does long work, and fails with errInterrupted as soon as the context
// ends.
func unless(ctx context.Context, work func() error) error {
	done := begun(work)
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return errInterrupted
	}
}

// within does work that ends soon after the context does. What does not, as calls of
// other libraries may not, is left behind after the grace, with an error.
func within(ctx context.Context, grace time.Duration, work func() error) error {
	done := begun(work)
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(grace):
		return fmt.Errorf("given up: %w; it did not end %v later either, and is left behind", context.Cause(ctx), grace)
	}
}

// interruptible is a writer that fails once the context has ended.
type interruptible struct {
	ctx context.Context
	to  io.Writer
}

func (w interruptible) Write(text []byte) (int, error) {
	if w.ctx.Err() != nil {
		return 0, errInterrupted
	}
	return w.to.Write(text)
}

// begun begins work, and returns where its error will come.
func begun(work func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- work() }()
	return done
}
