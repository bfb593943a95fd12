// The oracle answers, from kube-scheduler's own plugins, what kube-scheduler would do with a pod.
//
// In: one case per line of stdin, JSON. Out: one answer per line of stdout, JSON; see case.go and
// answer.go. A case that cannot be judged gets {"error": "..."}: the process goes on.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

// Preemption must be over when PostFilter returns, and no answer may depend on the case before it.
const alwaysOff = "SchedulerAsyncPreemption=false,OpportunisticBatching=false"

func main() {
	features := flag.String("features", "", "feature gates, A=true,B=false, as of kube-scheduler")
	verbose := flag.Bool("verbose", false, "let the plugins log to stderr")
	flag.Parse()
	gates := alwaysOff
	if *features != "" {
		gates += "," + *features
	}
	// Before anything else: the registry of plugins and the default profile both read the gates.
	if err := utilfeature.DefaultMutableFeatureGate.Set(gates); err != nil {
		fmt.Fprintln(os.Stderr, "features:", err)
		os.Exit(2)
	}
	metrics.Register() // the framework measures plugins through what this creates
	if !*verbose {
		klog.SetLogger(klog.Logger{})
		utilruntime.ErrorHandlers = nil
	}
	utilruntime.ReallyCrash = false // a panic in a worker is noted in guard.go; the process goes on
	utilruntime.PanicHandlers = append(utilruntime.PanicHandlers[:0], notePanic)
	answerAll()
}

func answerAll() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	worlds := newWorlds()
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 1 {
			if failure := encoder.Encode(answerLine(worlds, line)); failure != nil {
				fmt.Fprintln(os.Stderr, "answer:", failure)
				os.Exit(1)
			}
		}
		if in.Buffered() == 0 { // the one who asks waits for us
			if out.Flush() != nil {
				os.Exit(1)
			}
		}
		if err != nil {
			return
		}
	}
}
