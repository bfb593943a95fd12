package main

import (
	"context"
	"sort"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/labels"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
)

// postFilter fills in what follows when no node fits: preemption, and the condition's text.
func (p *place) postFilter(
	ctx context.Context, pod *v1.Pod, state fwk.CycleState, diagnosis framework.Diagnosis, result *answer,
) {
	fitError := &framework.FitError{Pod: pod, NumAllNodes: len(p.lister.all), Diagnosis: diagnosis}
	result.Reason = v1.PodReasonUnschedulable
	if p.framework.HasPostFilterPlugins() {
		// First, for a dry run leaves its mark in DynamicResources' state.
		found, status := p.framework.RunPostFilterPlugins(ctx, state, pod, diagnosis.NodeToStatus)
		dryRun := p.candidates(ctx, pod, state, diagnosis.NodeToStatus)
		outcome := &preempting{Candidates: describe(dryRun)}
		fitError.Diagnosis.PostFilterMsg = status.Message()
		outcome.Verdict = verdictOf(status)
		if status.IsSuccess() && found != nil && found.NominatingInfo != nil {
			outcome.Best = p.equallyGood(ctx, dryRun, found.NominatedNodeName)
			outcome.Node = outcome.Best[0] // for the same answer every time
			outcome.Victims = outcome.Candidates[outcome.Node].Victims
		}
		result.Preemption = outcome
	}
	result.Message = fitError.Error()
}

// candidates dry-runs preemption on every node where it may help, beyond the first that suffices.
func (p *place) candidates(
	ctx context.Context, pod *v1.Pod, state fwk.CycleState, statuses *framework.NodeToStatus,
) []preemption.Candidate {
	if p.preemption == nil {
		return nil
	}
	if ok, _ := p.preemption.PodEligibleToPreemptOthers(ctx, pod, statuses.Get(pod.Status.NominatedNodeName)); !ok {
		return nil
	}
	nodes, err := statuses.NodesForStatusCode(p.lister, fwk.Unschedulable)
	if err != nil || len(nodes) == 0 {
		return nil
	}
	var budgets []*policyv1.PodDisruptionBudget
	budgets, err = p.preemption.Evaluator.PdbLister.List(labels.Everything())
	if err != nil {
		return nil
	}
	all := int32(len(nodes))
	// One more than there are: the dry run stops when it has as many as asked for.
	found, _, _ := p.preemption.Evaluator.DryRunPreemption(ctx, state.Clone(), pod, nodes, budgets, 0, all+1)
	return found
}

func describe(found []preemption.Candidate) map[string]candidate {
	candidates := map[string]candidate{}
	for _, one := range found {
		candidates[one.Name()] = candidate{
			Victims: names(one.Victims().Pods), PDBViolations: one.Victims().NumPDBViolations,
		}
	}
	return candidates
}

// choicesMax is how often a choice between two is made to see whether it is a tie. A tie goes to the
// first, or for pods without a start time (which then is the clock's) the last, in the order of a map
// of Go: for two keys, 7 times out of 8 that of their insertion.
const choicesMax = 32

// equallyGood gives the chosen node and those that might have been chosen as well, by name.
func (p *place) equallyGood(ctx context.Context, found []preemption.Candidate, chosen string) []string {
	best := []string{chosen}
	for _, one := range found {
		if one.Name() != chosen {
			continue
		}
		for _, other := range found {
			for i := 0; i < choicesMax && other.Name() != chosen; i++ {
				pair := []preemption.Candidate{other, one}
				if i%2 == 1 {
					pair[0], pair[1] = one, other
				}
				if p.preemption.Evaluator.SelectCandidate(ctx, pair).Name() == other.Name() {
					best = append(best, other.Name())
					break
				}
			}
		}
	}
	sort.Strings(best)
	return best
}

func names(pods []*v1.Pod) []string {
	found := make([]string, 0, len(pods))
	for _, pod := range pods {
		found = append(found, pod.Namespace+"/"+pod.Name)
	}
	return found
}
