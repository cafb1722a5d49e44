package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"countersign/internal/engine"
	"countersign/internal/store"
	"countersign/internal/tools"
)

// shape is a figure of the engine by itself: how cost grows.
type shape struct {
	Case  string             `json:"case"`
	Means map[string]float64 `json:"figures"`
	order []string
}

func (s *shape) add(name string, value float64) {
	if s.Means == nil {
		s.Means = map[string]float64{}
	}
	s.Means[name] = value
	s.order = append(s.order, name)
}

func (s shape) print(asJSON bool) error {
	if asJSON {
		return json.NewEncoder(os.Stdout).Encode(s)
	}
	fmt.Printf("%-9s", s.Case)
	for _, name := range s.order {
		fmt.Printf("  %s %.4g", name, s.Means[name])
	}
	_, err := fmt.Println()
	return err
}

// shapes measures what does not depend on the raw writer.
func shapes(ctx context.Context, o options) error {
	for _, one := range []func(context.Context, options) (shape, error){long, waiting, recovery} {
		s, err := one(ctx, o)
		if err == nil {
			err = s.print(o.json)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

const (
	longSteps  = 100 // of the definition
	longPasses = 100 // of the loop around them
)

// long drives one run of 10,000 steps and compares what its first hundred and
// its last hundred take each.
func long(ctx context.Context, o options) (s shape, err error) {
	lib, err := compiledLibrary(looping(longSteps, longPasses))
	if err != nil {
		return s, err
	}
	var at []time.Time
	err = withConsole(ctx, o.dir, lib, func(c *console, dir string) error {
		c.engine = c.newEngine(engine.Options{World: seen{tell: func() { at = append(at, time.Now()) }}, LeaseFor: 10 * time.Minute})
		empty := sizeOf(dir)
		r, err := c.create(ctx)
		if err != nil {
			return err
		}
		if r, err = c.engine.Drive(ctx, r.ID); err != nil {
			return err
		}
		if r.Error == nil || r.Error.Code != "passes_exhausted" { // it ends by its loop's bound
			return errUnexpected
		}
		s.add("bytes_per_step", float64(sizeOf(dir)-empty)/float64(len(at)))
		return nil
	})
	if err != nil || len(at) != longSteps*longPasses {
		return s, errors.Join(err, fmt.Errorf("long: %d steps were taken", len(at)))
	}
	first, last := medianGap(at[:longSteps]), medianGap(at[len(at)-longSteps:])
	s.Case = "long"
	s.add("first_ms", first)
	s.add("last_ms", last)
	s.add("last_to_first", last/first)
	return s, nil
}

// waiting leaves many runs asleep and measures what they cost: to start with
// them, in memory, and in processor time while nothing is due.
func waiting(ctx context.Context, o options) (s shape, err error) {
	lib, err := compiledLibrary("steps:\n  - {id: nap, sleep: 240h}\n")
	if err != nil {
		return s, err
	}
	before := heap()
	err = withConsole(ctx, o.dir, lib, func(c *console, dir string) error {
		if _, err := closedLoop("waiting", 64, o.waiting, func(int) error {
			r, err := c.create(ctx)
			if err == nil {
				_, err = c.engine.Drive(ctx, r.ID)
			}
			return err
		}); err != nil {
			return err
		}
		if err := c.close(ctx); err != nil {
			return err
		}
		begun := time.Now()
		if *c, err = reopened(ctx, dir, lib); err != nil {
			return err
		}
		if err := c.engine.Start(ctx); err != nil {
			return err
		}
		s.add("start_ms", float64(time.Since(begun).Microseconds())/1000)
		cpu, idle := processorTime(), time.Now()
		time.Sleep(3 * time.Second)
		s.add("idle_processor_percent", 100*(processorTime()-cpu).Seconds()/time.Since(idle).Seconds())
		s.add("heap_bytes_per_run", max(0, float64(heap()-before))/float64(o.waiting))
		return nil
	})
	s.Case = "waiting"
	s.add("runs", float64(o.waiting))
	return s, err
}

const recovered = 1000

// recovery leaves a thousand runs in the middle, as a killed process would,
// and measures how long the next one takes to end them all.
func recovery(ctx context.Context, o options) (s shape, err error) {
	lib, err := newLibrary(stepsPerRun)
	if err != nil {
		return s, err
	}
	err = withConsole(ctx, o.dir, lib, func(c *console, _ string) error {
		dies := func(window, path string, _ int) {
			if window == "after-commit" && path == "s2" {
				panic(engine.Crashed{Window: window, Path: path})
			}
		}
		c.engine = c.newEngine(engine.Options{Crash: dies})
		if _, err := closedLoop("recovery", 64, recovered, func(int) error { return c.dying(ctx) }); err != nil {
			return err
		}
		begun := time.Now()
		c.engine = c.newEngine(engine.Options{Epoch: 2, Owner: "next"})
		if err := c.engine.Start(ctx); err != nil {
			return err
		}
		for done := 0; done < recovered; time.Sleep(5 * time.Millisecond) {
			err := c.db.View(ctx, func(ctx context.Context, q store.Querier) error {
				return q.QueryRow(ctx, "SELECT count(*) FROM run WHERE status = 'completed'").Scan(&done)
			})
			if err != nil {
				return err
			}
		}
		s.add("all_ended_ms", float64(time.Since(begun).Microseconds())/1000)
		return nil
	})
	s.Case = "recovery"
	s.add("runs", recovered)
	return s, err
}

// dying makes a run and drives it until the drive dies.
func (c *console) dying(ctx context.Context) (err error) {
	r, err := c.create(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if _, died := recover().(engine.Crashed); !died {
			err = errors.Join(err, errUnexpected)
		}
	}()
	_, err = c.engine.Drive(ctx, r.ID)
	return err
}

// withConsole opens a console in a folder of its own, and closes and removes
// it afterwards.
func withConsole(ctx context.Context, dir string, lib *library, do func(c *console, dir string) error) error {
	dir, err := os.MkdirTemp(dir, "bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	c, err := openConsole(ctx, dir, lib)
	if err != nil {
		return err
	}
	return errors.Join(do(c, dir), c.close(ctx))
}

func reopened(ctx context.Context, dir string, lib *library) (console, error) {
	c, err := openConsole(ctx, dir, lib)
	if err != nil {
		return console{}, err
	}
	return *c, nil
}

// seen is a world that tells of every read.
type seen struct {
	engine.World
	tell func()
}

// Call answers like nowhere.
func (w seen) Call(ctx context.Context, t *tools.Tool, f tools.Frozen, s tools.Sending) tools.Outcome {
	w.tell()
	return nowhere{}.Call(ctx, t, f, s)
}

// medianGap is the median time between two of the instants, in milliseconds.
func medianGap(at []time.Time) float64 {
	var gaps []time.Duration
	for i := range at[1:] {
		gaps = append(gaps, at[i+1].Sub(at[i]))
	}
	slices.Sort(gaps)
	return float64(gaps[len(gaps)/2].Microseconds()) / 1000
}

// heap is what is alive, after a collection.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// sizeOf is what the files of a folder hold together.
func sizeOf(dir string) (bytes int64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if info, failed := e.Info(); err == nil && failed == nil && !e.IsDir() {
			bytes += info.Size()
		}
		return nil
	})
	return bytes
}
