package main

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
)

// Panics of worker goroutines, seen while one case is answered.
var (
	panicsMutex sync.Mutex
	panics      []string
)

func notePanic(_ context.Context, r interface{}) {
	panicsMutex.Lock()
	defer panicsMutex.Unlock()
	panics = append(panics, describePanic(r))
}

func takePanics() []string {
	panicsMutex.Lock()
	defer panicsMutex.Unlock()
	taken := panics
	panics = nil
	return taken
}

// describePanic gives the value and the first frames below the scheduler's or our own code.
func describePanic(r interface{}) string {
	frames := []string{}
	for _, line := range strings.Split(string(debug.Stack()), "\n") {
		if strings.HasPrefix(line, "\t") && !strings.Contains(line, "runtime/") {
			frames = append(frames, strings.TrimSpace(line))
		}
	}
	return fmt.Sprintf("panic: %v (%s)", r, strings.Join(frames[:min(len(frames), 8)], "; "))
}

// answerLine answers one case whatever happens.
func answerLine(worlds *worlds, line []byte) (result interface{}) {
	defer func() {
		if r := recover(); r != nil {
			worlds.forget() // whatever is in them is half-done
			takePanics()
			result = failure{Error: describePanic(r)}
		}
	}()
	result, err := answerCase(worlds, line)
	if found := takePanics(); len(found) > 0 {
		worlds.forget()
		return failure{Error: strings.Join(found, "\n")}
	}
	if err != nil {
		return failure{Error: err.Error()}
	}
	return result
}
