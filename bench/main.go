// Command bench measures durable steps per second of the engine beside a raw
// writer that commits the same rows, in one run, round by round in turn, so
// that what else the machine does falls on both.
//
//	go run ./bench            a table
//	go run ./bench -json      a line of JSON per case
//
// A run is five sequential steps of about 600 bytes each; every result is
// looked for after opening the database again. synchronous=FULL.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// result is what one case came to, over all its rounds.
type result struct {
	Case       string  `json:"case"`
	InFlight   int     `json:"in_flight"`
	StepsPerS  float64 `json:"steps_per_s"`
	P50        float64 `json:"p50_ms"` // of a run, from its creation to its end
	P99        float64 `json:"p99_ms"`
	RatioToRaw float64 `json:"ratio_to_raw"`
}

type options struct {
	json    bool
	dir     string
	rounds  int
	runs    int
	flights []int
	only    string
	profile string
	waiting int
}

func main() {
	var o options
	flag.BoolVar(&o.json, "json", false, "print a line of JSON per case")
	flag.StringVar(&o.dir, "dir", "", "where the databases go; a real disk (default: the system's folder for temporary files)")
	flag.IntVar(&o.rounds, "rounds", 3, "times each case is measured; the median counts")
	flag.IntVar(&o.runs, "runs", 4000, "runs per round with many in flight; a tenth of it with one")
	flag.StringVar(&o.only, "case", "", "measure only engine or raw, without a ratio: for profiles; or only shapes: how cost grows")
	o.flights = []int{1, 64, 256}
	flag.Func("in-flight", "runs in flight, separated by commas (default 1,64,256)", o.setFlights)
	flag.StringVar(&o.profile, "cpuprofile", "", "write a CPU profile of everything here")
	flag.IntVar(&o.waiting, "waiting", 20_000, "runs that wait while the waiting case is measured")
	flag.Parse()
	if err := measure(context.Background(), o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func measure(ctx context.Context, o options) error {
	if o.profile != "" {
		f, err := os.Create(o.profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	if o.only == "shapes" {
		return shapes(ctx, o)
	}
	if err := throughput(ctx, o); err != nil || o.only != "" {
		return err
	}
	return shapes(ctx, o)
}

// throughput compares engine and raw writer for each number of runs in flight.
func throughput(ctx context.Context, o options) error {
	for _, inFlight := range o.flights {
		runs := o.runs
		if inFlight == 1 {
			runs = max(1, runs/10)
		}
		engine, raw, err := pair(ctx, o, inFlight, runs)
		if err != nil {
			return err
		}
		if o.only == "" {
			engine.RatioToRaw, raw.RatioToRaw = engine.StepsPerS/raw.StepsPerS, 1
		}
		for _, r := range []result{raw, engine} {
			if r.Case == "" {
				continue
			}
			if err := print(r, o.json); err != nil {
				return err
			}
		}
	}
	return nil
}

func (o *options) setFlights(list string) error {
	o.flights = nil
	for word := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 || n > 10_000 {
			return fmt.Errorf("%q is not a number from 1 to 10000", word)
		}
		o.flights = append(o.flights, n)
	}
	return nil
}

func print(r result, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(os.Stdout).Encode(r)
	}
	_, err := fmt.Printf("%-8s %4d in flight  %8.0f steps/s  p50 %7.2f ms  p99 %7.2f ms  %.2f of raw\n", r.Case, r.InFlight, r.StepsPerS, r.P50, r.P99, r.RatioToRaw)
	return err
}

// pair measures engine and raw writer in turn.
func pair(ctx context.Context, o options, inFlight, runs int) (engine, raw result, err error) {
	var engines, raws []result
	for range o.rounds {
		if o.only != "engine" {
			if raw, err = rawRound(ctx, o.dir, inFlight, runs); err != nil {
				return engine, raw, fmt.Errorf("raw: %w", err)
			}
		}
		if o.only != "raw" {
			if engine, err = engineRound(ctx, o.dir, inFlight, runs); err != nil {
				return engine, raw, fmt.Errorf("engine: %w", err)
			}
		}
		raws, engines = append(raws, raw), append(engines, engine)
	}
	return median(engines), median(raws), nil
}

func median(all []result) result {
	slices.SortFunc(all, func(a, b result) int { return int(a.StepsPerS - b.StepsPerS) })
	return all[len(all)/2]
}

func engineRound(ctx context.Context, dir string, inFlight, runs int) (result, error) {
	dir, err := os.MkdirTemp(dir, "bench-")
	if err != nil {
		return result{}, err
	}
	defer os.RemoveAll(dir)
	lib, err := newLibrary(stepsPerRun)
	if err != nil {
		return result{}, err
	}
	c, err := openConsole(ctx, dir, lib)
	if err != nil {
		return result{}, err
	}
	r, err := closedLoop("engine", inFlight, runs, func(int) error { return c.run(ctx) })
	if err != nil {
		return result{}, err
	}
	if err := c.close(ctx); err != nil {
		return result{}, err
	}
	return r, checkConsole(ctx, dir, lib, runs, stepsPerRun)
}

func rawRound(ctx context.Context, dir string, inFlight, runs int) (result, error) {
	dir, err := os.MkdirTemp(dir, "bench-")
	if err != nil {
		return result{}, err
	}
	defer os.RemoveAll(dir)
	lib, err := newLibrary(stepsPerRun)
	if err != nil {
		return result{}, err
	}
	w, err := openRaw(ctx, dir, lib)
	if err != nil {
		return result{}, err
	}
	r, err := closedLoop("raw", inFlight, runs, w.run)
	if err != nil {
		return result{}, err
	}
	if err := w.close(); err != nil {
		return result{}, err
	}
	return r, checkConsole(ctx, dir, lib, runs, stepsPerRun)
}

// closedLoop keeps so many runs in flight until all are done.
func closedLoop(name string, inFlight, runs int, run func(n int) error) (result, error) {
	took := make([]time.Duration, runs)
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var all sync.WaitGroup
	start := time.Now()
	for range inFlight {
		all.Go(func() {
			for n := int(next.Add(1)) - 1; n < runs && failed.Load() == nil; n = int(next.Add(1)) - 1 {
				begun := time.Now()
				if err := run(n); err != nil {
					failed.Store(&err)
				}
				took[n] = time.Since(begun)
			}
		})
	}
	all.Wait()
	whole := time.Since(start)
	if err := failed.Load(); err != nil {
		return result{}, *err
	}
	slices.Sort(took)
	at := func(p float64) float64 { return float64(took[int(p*float64(runs-1))].Microseconds()) / 1000 }
	return result{Case: name, InFlight: inFlight, StepsPerS: float64(runs*stepsPerRun) / whole.Seconds(), P50: at(0.5), P99: at(0.99)}, nil
}
