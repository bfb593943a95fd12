package main

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

func answerCase(worlds *worlds, line []byte) (interface{}, error) {
	q, objects, err := parseQuestion(line)
	if err != nil {
		return nil, err
	}
	if q.Admit != nil {
		return admit(q.Admit)
	}
	w, err := worlds.get(q.Profile)
	if err != nil {
		return nil, err
	}
	defer w.shelves.clear()
	p, err := load(w, q, objects)
	if err != nil {
		return nil, err
	}
	if q.Sequence != nil {
		return p.playSequence(q)
	}
	if q.Pod == nil {
		return nil, errors.New("case: neither pod nor sequence nor admit")
	}
	result, _, err := p.judge(q.Pod, q)
	return result, err
}

// judge asks everything about one pending pod. The state is that of the framework's own run.
func (p *place) judge(pod *v1.Pod, q *question) (*answer, fwk.CycleState, error) {
	if err := p.add(pod); err != nil {
		return nil, nil, err
	}
	p.lister.replace(p.existing, p.nodes)
	p.writes = nil
	result := &answer{PreEnqueue: p.preEnqueue(pod), Weights: p.weights, Feasible: []string{}}
	p.judgeEachPlugin(pod, result)
	// Filters write into the state, so the framework gets one of its own.
	state := framework.NewCycleState()
	p.judgeAsFramework(pod, state, result, p.toScore(q))
	result.Writes = p.writes
	return result, state, nil
}

func (p *place) preEnqueue(pod *v1.Pod) map[string]verdict {
	verdicts := map[string]verdict{}
	for _, plugin := range p.framework.PreEnqueuePlugins() {
		if status := plugin.PreEnqueue(context.Background(), pod); !status.IsSuccess() {
			verdicts[plugin.Name()] = verdictOf(status)
		}
	}
	return verdicts
}

// judgeEachPlugin runs every plugin on every node, whatever the others say.
func (p *place) judgeEachPlugin(pod *v1.Pod, result *answer) {
	ctx := context.Background()
	state := framework.NewCycleState()
	skipped := map[string]bool{}
	everywhere := map[string]verdict{}
	allowed := map[string]sets.Set[string]{}
	result.PreFilter = map[string]verdict{}
	enabled := p.enabled
	for _, name := range enabled.preFilter {
		found, status := p.plugins[name].(fwk.PreFilterPlugin).PreFilter(ctx, state, pod, p.lister.all)
		result.PreFilter[name] = verdictOf(status)
		switch {
		case status.IsSkip():
			skipped[name] = true
		case !status.IsSuccess():
			everywhere[name] = verdictOf(status)
		case !found.AllNodes():
			allowed[name] = found.NodeNames
		}
	}
	result.Filter = map[string]map[string]verdict{}
	for _, node := range p.lister.all {
		verdicts := map[string]verdict{}
		result.Filter[node.Node().Name] = verdicts
		for _, name := range enabled.filter {
			if failed, ok := everywhere[name]; ok {
				verdicts[name] = failed
			} else if names, ok := allowed[name]; ok && !names.Has(node.Node().Name) {
				verdicts[name] = verdict{Code: "PreFilterResult"}
			} else if !skipped[name] {
				status := p.plugins[name].(fwk.FilterPlugin).Filter(ctx, state, pod, node)
				if !status.IsSuccess() {
					verdicts[name] = verdictOf(status)
				}
			}
		}
	}
}

// judgeAsFramework does what Scheduler.schedulePod does, on all nodes instead of a sample.
func (p *place) judgeAsFramework(pod *v1.Pod, state fwk.CycleState, result *answer, toScore []fwk.NodeInfo) {
	ctx := context.Background()
	result.First = map[string]verdict{}
	if len(p.lister.all) == 0 {
		result.Reason, result.Message = v1.PodReasonUnschedulable, scheduler.ErrNoNodesAvailable.Error()
		return
	}
	diagnosis := framework.Diagnosis{NodeToStatus: framework.NewDefaultNodeToStatus()}
	feasible, err := p.findFeasible(ctx, pod, state, &diagnosis)
	for _, node := range p.lister.all {
		name := node.Node().Name
		if status := diagnosis.NodeToStatus.Get(name); !feasible.names.Has(name) {
			result.First[name] = verdictOf(status)
		}
	}
	if err != nil {
		result.Reason, result.Message = v1.PodReasonSchedulerError, err.Error()
		return
	}
	if len(feasible.nodes) == 0 {
		p.postFilter(ctx, pod, state, diagnosis, result)
		if toScore == nil {
			return
		}
	}
	for _, node := range feasible.nodes {
		result.Feasible = append(result.Feasible, node.Node().Name)
	}
	asScheduler := toScore == nil
	if asScheduler {
		toScore = feasible.nodes
	}
	if err := p.score(ctx, pod, state, toScore, result); err != nil && len(feasible.nodes) > 1 {
		result.Reason, result.Message = v1.PodReasonSchedulerError, err.Error()
		return
	}
	if asScheduler { // totals of other nodes are not those that the scheduler compares
		result.Best = p.best(pod, result)
	}
}

// toScore lists the nodes to be scored; nil leaves it to the filters.
func (p *place) toScore(q *question) []fwk.NodeInfo {
	if q.ScoreAll {
		return p.lister.all
	}
	if q.ScoreNodes == nil {
		return nil
	}
	wanted := sets.New(q.ScoreNodes...)
	chosen := []fwk.NodeInfo{}
	for _, node := range p.lister.all {
		if wanted.Has(node.Node().Name) {
			chosen = append(chosen, node)
		}
	}
	return chosen
}

type feasibleNodes struct {
	nodes []fwk.NodeInfo
	names sets.Set[string]
}

func (p *place) findFeasible(
	ctx context.Context, pod *v1.Pod, state fwk.CycleState, diagnosis *framework.Diagnosis,
) (feasibleNodes, error) {
	feasible := feasibleNodes{names: sets.New[string]()}
	found, status, rejectors := p.framework.RunPreFilterPlugins(ctx, state, pod)
	if !status.IsSuccess() {
		diagnosis.NodeToStatus.SetAbsentNodesStatus(status)
		if !status.IsRejected() {
			return feasible, status.AsError()
		}
		diagnosis.PreFilterMsg = status.Message()
		return feasible, nil
	}
	if !found.AllNodes() {
		diagnosis.NodeToStatus.SetAbsentNodesStatus(fwk.NewStatus(
			fwk.UnschedulableAndUnresolvable,
			fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", sets.List(rejectors))))
	}
	var failed error
	for _, node := range p.lister.all {
		name := node.Node().Name
		if !found.AllNodes() && !found.NodeNames.Has(name) {
			continue
		}
		status := p.framework.RunFilterPluginsWithNominatedPods(ctx, state, pod, node)
		if status.IsSuccess() {
			feasible.nodes = append(feasible.nodes, node)
			feasible.names.Insert(name)
			continue
		}
		diagnosis.NodeToStatus.Set(name, status)
		if status.Code() == fwk.Error && failed == nil {
			failed = status.AsError()
		}
	}
	return feasible, failed
}

func (p *place) score(
	ctx context.Context, pod *v1.Pod, state fwk.CycleState, nodes []fwk.NodeInfo, result *answer,
) error {
	if status := p.framework.RunPreScorePlugins(ctx, state, pod, nodes); !status.IsSuccess() {
		return status.AsError()
	}
	scored, status := p.framework.RunScorePlugins(ctx, state, pod, nodes)
	if !status.IsSuccess() {
		return status.AsError()
	}
	result.Scores = map[string]map[string]int64{}
	result.Total = map[string]int64{}
	for _, node := range scored {
		result.Total[node.Name] = node.TotalScore
		scores := map[string]int64{}
		for _, one := range node.Scores {
			scores[one.Name] = one.Score / p.weights[one.Name] // the framework has multiplied
		}
		result.Scores[node.Name] = scores
	}
	return nil
}

// best names the nodes that the scheduler may choose: ties are broken by the order in a heap.
func (p *place) best(pod *v1.Pod, result *answer) []string {
	nominated := pod.Status.NominatedNodeName
	var best []string
	for _, name := range result.Feasible {
		if name == nominated { // tried first and taken without scoring
			return []string{name}
		}
		if len(best) == 0 || result.Total[name] > result.Total[best[0]] {
			best = nil
		}
		if len(best) == 0 || result.Total[name] == result.Total[best[0]] {
			best = append(best, name)
		}
	}
	return best
}
