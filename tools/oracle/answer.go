package main

import (
	fwk "k8s.io/kube-scheduler/framework"
)

// verdict is a framework.Status. In maps of verdicts per node, what is absent is a Success.
type verdict struct {
	Code    string   `json:"code"`
	Plugin  string   `json:"plugin,omitempty"`
	Reasons []string `json:"reasons,omitempty"`
}

// answer is what kube-scheduler would do with one pending pod.
type answer struct {
	// Per plugin; a plugin that is absent is not in the profile.
	PreEnqueue map[string]verdict `json:"preEnqueue,omitempty"`
	PreFilter  map[string]verdict `json:"preFilter"`
	// Per node and plugin, each plugin by itself (kube-scheduler stops at the first that fails),
	// nominated pods not counted.
	Filter map[string]map[string]verdict `json:"filter"`
	// Per node: what the framework reports, nominated pods counted.
	First    map[string]verdict `json:"first"`
	Feasible []string           `json:"feasible"`
	// Per node and plugin, normalised to 0..100, before weights. Plugins that skip are absent.
	Scores  map[string]map[string]int64 `json:"scores,omitempty"`
	Weights map[string]int64            `json:"weights,omitempty"`
	Total   map[string]int64            `json:"total,omitempty"`
	// The nodes that kube-scheduler may choose from: the nominated one, or those of highest total.
	Best []string `json:"best,omitempty"`
	// Reason and message of the condition PodScheduled=False, where no node is found.
	Reason     string      `json:"reason,omitempty"`
	Message    string      `json:"message,omitempty"`
	Preemption *preempting `json:"preemption,omitempty"`
	Writes     []string    `json:"writes,omitempty"`
	// In a sequence: where the pod was assumed to run, or why it could not be.
	Assumed      string `json:"assumed,omitempty"`
	AssumeFailed string `json:"assumeFailed,omitempty"`
}

// preempting is the outcome of PostFilter.
type preempting struct {
	Node       string               `json:"node,omitempty"`    // the first of Best
	Best       []string             `json:"best,omitempty"`    // the nodes that might be chosen: ties are open
	Victims    []string             `json:"victims,omitempty"` // namespace/name
	Verdict    verdict              `json:"verdict"`
	Candidates map[string]candidate `json:"candidates,omitempty"` // every node that preemption could free
}

type candidate struct {
	Victims       []string `json:"victims"`
	PDBViolations int64    `json:"pdbViolations,omitempty"`
}

type sequenceAnswer struct {
	Steps []*answer `json:"steps"`
}

type failure struct {
	Error string `json:"error"`
}

func verdictOf(status *fwk.Status) verdict {
	if status == nil {
		return verdict{Code: "Success"}
	}
	return verdict{Code: status.Code().String(), Plugin: status.Plugin(), Reasons: status.Reasons()}
}
