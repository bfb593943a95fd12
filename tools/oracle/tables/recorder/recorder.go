// Package recorder notes what the scheduler's own table tests ask its plugins, and what they say.
//
// Copies of the plugins call it around each of their methods (see ../hooking.py). It writes one
// JSON object per line to a file for each plugin, in the folder that ORACLE_TABLES names;
// ../fixtures.py reads them.
package recorder

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
)

type made struct {
	Args     json.RawMessage
	Features []string
	handle   fwk.Handle
}

// group is one run of a test case: what one plugin is asked about one pod with one state.
type group struct{ plugin, state, pod interface{} }

var (
	mutex    sync.Mutex
	output   *os.File
	plugins  = map[interface{}]made{}
	groups   = map[group]int{}
	groupsNo int
)

type event map[string]interface{}

// verdict is a framework.Status as the oracle writes it.
type verdict struct {
	Code    string   `json:"code"`
	Reasons []string `json:"reasons,omitempty"`
}

func verdictOf(status *fwk.Status) verdict {
	if status == nil {
		return verdict{Code: "Success"}
	}
	return verdict{Code: status.Code().String(), Reasons: status.Reasons()}
}

// Made notes what a plugin was made from.
func Made(plugin interface{}, parameters ...interface{}) {
	mutex.Lock()
	defer mutex.Unlock()
	if plugin == nil || reflect.ValueOf(plugin).IsNil() {
		return
	}
	found := made{}
	for _, parameter := range parameters {
		switch p := parameter.(type) {
		case fwk.Handle:
			found.handle = p
		case kruntime.Object:
			found.Args = encodeArgs(p)
		case feature.Features:
			found.Features = unusual(p)
		}
	}
	plugins[plugin] = found
}

// PreFilter notes a PreFilter call; the other functions their calls.
func PreFilter(plugin fwk.Plugin, state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo, found *fwk.PreFilterResult, status *fwk.Status) {
	mutex.Lock()
	defer mutex.Unlock()
	noted := event{"kind": "preFilter", "verdict": verdictOf(status)}
	if found != nil && found.NodeNames != nil {
		noted["nodeNames"] = found.NodeNames.UnsortedList()
	}
	write(plugin, state, pod, nodes, noted)
}

func Filter(plugin fwk.Plugin, state fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo, status *fwk.Status) {
	mutex.Lock()
	defer mutex.Unlock()
	write(plugin, state, pod, nil, event{"kind": "filter", "on": describe(node), "verdict": verdictOf(status)})
}

func PreScore(plugin fwk.Plugin, state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo, status *fwk.Status) {
	mutex.Lock()
	defer mutex.Unlock()
	write(plugin, state, pod, nodes, event{"kind": "preScore", "verdict": verdictOf(status), "nodes": describeAll(nodes)})
}

func Score(plugin fwk.Plugin, state fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo, score int64, status *fwk.Status) {
	mutex.Lock()
	defer mutex.Unlock()
	write(plugin, state, pod, nil, event{"kind": "score", "on": describe(node), "score": score, "verdict": verdictOf(status)})
}

func NormalizeScore(plugin fwk.Plugin, state fwk.CycleState, pod *v1.Pod, scores fwk.NodeScoreList, status *fwk.Status) {
	mutex.Lock()
	defer mutex.Unlock()
	normalized := map[string]int64{}
	for _, score := range scores {
		normalized[score.Name] = score.Score
	}
	write(plugin, state, pod, nil, event{"kind": "normalized", "scores": normalized, "verdict": verdictOf(status)})
}

// SelectVictimsOnNode has a state of its own for each node: one pod's nodes belong together.
func SelectVictimsOnNode(plugin fwk.Plugin, _ fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo, pdbs []*policy.PodDisruptionBudget, victims []*v1.Pod, violations int, status *fwk.Status) {
	mutex.Lock()
	defer mutex.Unlock()
	extra := []kruntime.Object{}
	for _, pdb := range pdbs {
		extra = append(extra, pdb)
	}
	write(plugin, dryRun, pod, nil, event{
		"kind": "victims", "node": node.Node().Name, "victims": victims, "pdbViolations": violations,
		"verdict": verdictOf(status),
	}, extra...)
}

// dryRun stands for all states of a dry run.
var dryRun fwk.CycleState = framework.NewCycleState()

// write adds who asks, and before the first event of a group its cluster.
func write(plugin fwk.Plugin, state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo, noted event, extra ...kruntime.Object) {
	if pod == nil || (reflect.ValueOf(plugin).Kind() == reflect.Pointer && reflect.ValueOf(plugin).IsNil()) {
		return
	}
	key := group{plugin, state, pod}
	id, known := groups[key]
	if !known || state == nil {
		groupsNo++
		id = groupsNo
		groups[key] = id
		emit(cluster(plugin, pod, nodes, extra), id)
	}
	emit(noted, id)
}

func emit(noted event, id int) {
	if output == nil {
		folder := os.Getenv("ORACLE_TABLES")
		if folder == "" {
			return
		}
		name := strings.TrimSuffix(filepath.Base(os.Args[0]), ".test") + ".jsonl"
		opened, err := os.OpenFile(filepath.Join(folder, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			panic(err)
		}
		output = opened
	}
	noted["group"] = id
	line, err := json.Marshal(noted)
	if err != nil {
		panic(err)
	}
	if _, err := output.Write(append(line, '\n')); err != nil {
		panic(err)
	}
}

func cluster(plugin fwk.Plugin, pod *v1.Pod, nodes []fwk.NodeInfo, extra []kruntime.Object) event {
	from := plugins[plugin]
	noted := event{"kind": "cluster", "plugin": plugin.Name(), "source": source(), "pod": pod, "features": from.Features}
	if from.Args != nil {
		noted["args"] = from.Args
	}
	if listed := snapshotOf(from.handle); len(listed) > 0 {
		nodes = listed
	}
	noted["nodes"] = describeAll(nodes)
	noted["objects"] = objectsOf(plugin, from.handle, extra)
	return noted
}

func snapshotOf(handle fwk.Handle) []fwk.NodeInfo {
	if handle == nil || reflect.ValueOf(handle).IsNil() {
		return nil
	}
	lister := handle.SnapshotSharedLister()
	if lister == nil || reflect.ValueOf(lister).IsNil() || lister.NodeInfos() == nil {
		return nil
	}
	listed, _ := lister.NodeInfos().List()
	return listed
}

type described struct {
	Node *v1.Node  `json:"node"`
	Pods []*v1.Pod `json:"pods"`
}

func describe(info fwk.NodeInfo) *described {
	if info == nil || reflect.ValueOf(info).IsNil() {
		return nil
	}
	found := &described{Node: info.Node(), Pods: []*v1.Pod{}}
	for _, pod := range info.GetPods() {
		found.Pods = append(found.Pods, pod.GetPod())
	}
	return found
}

func describeAll(infos []fwk.NodeInfo) []*described {
	found := []*described{}
	for _, info := range infos {
		found = append(found, describe(info))
	}
	return found
}

// source names the line of the table test that we are called from.
func source() string {
	callers := make([]uintptr, 64)
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers)])
	for {
		frame, more := frames.Next()
		if strings.HasSuffix(frame.File, "_test.go") {
			return fmt.Sprintf("%s/%s:%d", filepath.Base(filepath.Dir(frame.File)), filepath.Base(frame.File), frame.Line)
		}
		if !more {
			return ""
		}
	}
}
