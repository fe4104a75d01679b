package search

import "time"

// Most values of this file were tuned by hand on the servers of internal/truth. The
// comments give the purpose of a value. docs/find-method.md lists the measured effect of
// some of them, changed one at a time.

// defaultWithin is the default of Search.Within: 5 % between two named loads.
const defaultWithin = 0.05

// Bounds of a search.
const (
	// maxProbes ends a search if it does not end by itself. Most searches take 8 to 12
	// probes.
	maxProbes = 60
	// maxFullProbes bounds the full probes of one load, because a load exactly at the
	// limit would otherwise take all of the budget.
	maxFullProbes = 5
	// maxVoidProbes is the number of void probes after which the search gives up: three
	// loads, each tried twice.
	maxVoidProbes = 6
	// budgetRequests is the default budget: the time of this many requests at
	// the limit. That is about a quarter of a sweep of ten levels with 1,000 requests
	// each.
	budgetRequests = 6500
	// undecidedBudgetFactor extends the default budget while there is no answer, because
	// an undecided search is of little use.
	undecidedBudgetFactor = 3
	// minBudget is the least default budget. A fast server may serve 6,500 requests
	// in less time than two full probes take.
	minBudget = 90 * time.Second
)

// Sizes of probes, in requests of the steady part.
const (
	// aloneRequests is the least size of the first probe, which sends one request at
	// a time and therefore is slow.
	aloneRequests = 4
	// aloneMaxFactor is the ratio of the largest to the least size of the first probe.
	// It bounds the time, because each request costs its whole latency.
	aloneMaxFactor = 3
	// scoutRequests is the least size of a scout, and the least sample of which
	// percentiles and slopes are computed at all.
	scoutRequests = 20
	// scoutMaxFactor is the ratio of the largest to the least size of a scout. A short
	// probe is at least as large as the largest scout.
	scoutMaxFactor = 5
	// fullMinFactor is the ratio of the sizes at which a full probe and a scout are
	// judged first: 60 requests.
	fullMinFactor = 3
	// fullTailRequests is the number of requests beyond the percentile at the limit
	// that a full probe takes: 2,000 requests for a p99. Their number then has a
	// standard error of 22 % if they are independent.
	fullTailRequests = 20
	// minFullRequests is the least size of a full probe. In smaller probes a few
	// clusters of slow requests decide.
	minFullRequests = 1000
	// meanRequests is the size of a full probe for a mean. A mean of waiting times
	// varies as much as a p99, because a few long waits dominate it.
	meanRequests = 2000
	// shortProbeDivisor is the ratio of the sizes of a full and a short probe. A short
	// probe only narrows a wide bracket, and longer probes check the result.
	shortProbeDivisor = 4
	// failureTailRequests is the expected number of failures in a full probe at the
	// limit of a goal on failures. If none of 3 expected failures occurs, the share is
	// below the limit at a confidence of 95 % (exp(-3) = 0.05).
	failureTailRequests = 3
	// maxFailureRequests bounds the size required by a goal on failures: error<0.1%
	// would take 3,000 requests.
	maxFailureRequests = 1000
	// enoughShare is the required share of the wanted requests after the
	// warm-up to make a probe a full one.
	enoughShare = 0.75
	// warmupCeilingFactor extends the most requests of a probe, because the first
	// third of its time may be warm-up.
	warmupCeilingFactor = 1.5
)

// Durations of probes.
const (
	// scoutTime is the least duration of a scout or a short probe. It is short because
	// a scout may be far above the limit, and the search then waits for the backlog.
	scoutTime = 2 * time.Second
	// fullTime is the least duration of a full probe, because servers stall and fill
	// for seconds.
	fullTime = 20 * time.Second
	// minLatencies is the least duration of a probe in p95 latencies of a request. A
	// server fills for at least one latency.
	minLatencies = 5
	// scoutMinLatencies is the same for a scout, which only has to see a load far above
	// the limit.
	scoutMinLatencies = 2
)

// Loads of probes, as ratios of loads.
const (
	// scoutStep is the ratio of the loads of successive scouts: 6 scouts span a factor
	// of 1,000.
	scoutStep = 4
	// nearStep is the step up from a load measured by a longer probe, because the
	// limit seemed to be near it.
	nearStep = 2
	// scoutStepTolerance absorbs the rounding of loads if two loads are compared that
	// are one scoutStep apart.
	scoutStepTolerance = 0.9
	// wideBracket is the ratio of the ends of a bracket above which short probes
	// narrow it. Below it, full probes do.
	wideBracket = 1.2
	// wideBracketMargin is the share of the logarithmic width of a wide bracket that a
	// proposed load keeps from both ends, so each probe narrows the bracket.
	wideBracketMargin = 0.15
	// belowMargin is the distance of a proposed load below the estimated limit, in
	// units of Within. With a fifth of Within (1 %), the load probably holds.
	belowMargin = 0.2
	// aboveMargin is the distance of a proposed load above the estimate, in units of
	// Within. With belowMargin it leaves the two ends less than Within apart.
	aboveMargin = 0.6
	// clientLimitRatio ends the narrowing of a bracket whose upper end is a load that
	// the client cannot send, because that end says nothing about the server.
	clientLimitRatio = 1.5
	// scoutMargin is the ratio by which a scout must be below the lowest miss to count
	// as a load that holds. A scout ends before a load near the limit shows its effect.
	scoutMargin = 1.3
	// recheckMisses is the number of misses above a load measured only by a scout,
	// after which a short probe measures the load again. The scout may have been wrong.
	recheckMisses = 2
	// oneSidedProbes is the number of successive probes on one side of the limit after
	// which the search bisects, because the estimate is wrong.
	oneSidedProbes = 3
	// maxMissRatio bounds the miss ratio of a probe, so an overloaded server does
	// not outweigh all other probes in the isotonic regression.
	maxMissRatio = 100
	// foundWithinFactor is the width of an accepted bracket, in units
	// of Within. The search aims at Within, and accepts twice as much if it must stop.
	foundWithinFactor = 2
	// lowestLoadFactor is the factor below one request at a time at which a miss shows
	// that no load holds. 16 is two scout steps.
	lowestLoadFactor = 16
	// persistentMissShare is the share of misses left at a quarter of the load above
	// which load is not the cause. A queue would leave a quarter or less.
	persistentMissShare = 0.5
)

// Significance levels and the rule for one probe.
const (
	// scoutAlpha is the significance level of a scout. Later probes correct its errors.
	scoutAlpha = 0.2
	// fullAlpha is the significance level of other probes if they stop early.
	fullAlpha = 0.05
	// endAlpha is the p-value of the two ends of the bracket at which the search ends
	// before its budget is spent.
	endAlpha = 0.1
	// intervalAlpha is the significance level of each end of the interval: together 95 %.
	intervalAlpha = 0.025
	// emptyServerMargin widens the interval by 2 %, because each probe begins with an
	// empty server and therefore flatters it.
	emptyServerMargin = 1.02
	// checkGrowth is the ratio of the requests at two successive checks of a running
	// probe: about 20 checks for 2,000 requests.
	checkGrowth = 1.2
	// checkPenalty divides the significance level of a check, because there are about
	// 20 checks. It is less than 20, because the checks see mostly the same requests.
	checkPenalty = 6
	// scoutClearance is the share of a limit below which a scout holds, and above whose
	// inverse it misses, without a significant test.
	scoutClearance = 0.6
	// scoutEffectiveSize is the effective sample size for such a verdict.
	scoutEffectiveSize = 4
)

// Effective sample size of the miss ratio of a goal.
const (
	// minRuns is the number of runs of misses from which on their mean length is known.
	minRuns = 3
	// unknownRunLength is the assumed length of a run of misses below minRuns.
	unknownRunLength = 3
	// maxThresholdShare bounds the share of slow requests at the
	// thresholds of clusterFactors.
	maxThresholdShare = 0.25
)

// clusterFactors set two thresholds at which the clustering of slow requests is
// measured, in units of the share that may miss the goal. Near the limit enough
// requests are beyond these thresholds, though few miss the goal itself.
var clusterFactors = [...]float64{1.5, 5}

// Warm-up and overload of an open loop.
const (
	// latencyQuantile is the percentile of request durations used as
	// the time after which the server is full.
	latencyQuantile = 0.95
	// warmupLatencies is the longest warm-up, in p95 latencies. Near its limit a
	// server fills for several times as long as a request takes.
	warmupLatencies = 5
	// warmupDivisor makes a quarter of the probe warm-up, if this is shorter.
	warmupDivisor = 4
	// latencyWarmupDivisor bounds the least warm-up of one p95 latency to a third of
	// the probe.
	latencyWarmupDivisor = 3
	// risingSigma is the significant rise of the requests in flight, in
	// standard errors.
	risingSigma = 2
	// growingSigma is the rise, in standard errors, at which a probe ends as overrun. It is
	// larger, because such a verdict is final.
	growingSigma = 4
	// growingLatencies is the minimum length of the steady part before a rise counts
	// as overrun, in p95 latencies.
	growingLatencies = 2
	// minQuarterLatencies bounds the standard error if a quarter of the steady part is
	// much shorter than a request.
	minQuarterLatencies = 0.25
	// overrunShare is the unserved share of the arrivals at which a probe ends.
	// A smaller share stays unserved for a while if a server fills near its limit.
	overrunShare = 0.2
	// overrunShareAtEnd is the same for a probe with all of its requests.
	overrunShareAtEnd = 0.05
	// keptUpShare is the served share of the arrivals in the last third
	// of any probe if it keeps up.
	keptUpShare = 0.7
	// keptUpSigma is the significant backlog there, in standard deviations of
	// a Poisson number of arrivals.
	keptUpSigma = 3
)

// Drift: two contradictory probes.
const (
	// contradictionAlpha bounds the product of the p-values of two probes that
	// contradict each other: 0.005 each, because there are many pairs of probes.
	contradictionAlpha = 0.005 * 0.005
	// driftLogLatency is the least rise of the mean logarithm of latency: 20 %. A
	// smaller rise moves the limit by less than its uncertainty.
	driftLogLatency = 0.18
	// driftSigma is the least rise in standard errors. It is large because there are
	// many pairs of probes, and the standard errors are estimates.
	driftSigma = 6.0
)

// The power-law fit of powerfit.go. Distances are differences of logarithms of loads.
const (
	// fitReach is the standard deviation of the Gaussian weight by distance.
	fitReach = 0.08
	// rareReach is the same for rare misses, because fewer requests tell about them.
	rareReach = 0.12
	// rareShare is the allowed miss ratio of a goal below which misses are rare.
	rareShare = 0.02
	// powerReach is the same for the power. A slope takes a wider range than a value.
	powerReach = 2 * rareReach
	// farWeight is the weight of a probe beyond all reach, so the nearest one
	// counts if there is no near one.
	farWeight = 1e-6
	// defaultPower is the prior mean of the power of the load with which latency grows.
	defaultPower = 3.0
	// defaultPowerWeight is the weight of the prior, in requests times squared distance.
	defaultPowerWeight = 0.2
	// minPower is the least power: below it the estimate would extrapolate too far up.
	minPower = 0.7
	// maxPower is the largest power: above it the estimate would not leave the probes.
	maxPower = 15.0
	// sharePower is the power with which the share of misses grows, if a request has
	// no single value.
	sharePower = 12.0
	// fitRounds bounds the iterations of the fit, whose weights depend on its result.
	fitRounds = 8
	// fitTolerance is the relative change at which the iterations end.
	fitTolerance = 0.002
	// bisectTolerance is the distance of two loads at which a bisection ends.
	bisectTolerance = 1e-4
	// fitBelow is the ratio of the lowest load tried to the lowest load of the fit.
	fitBelow = 2
	// fitAbove is the ratio of the highest load of the fit to the highest load tried. It
	// is small, because latency beyond the highest load is unknown.
	fitAbove = 1.2
	// minFitRange is the least ratio of the ends of the range of the fit to the lowest
	// load tried.
	minFitRange = 1.01
)

// The fit of the queueing model (queuefit.go).
const (
	// trainingRange is the ratio of loads within which probes count for the fit, because
	// the model is used only near the limit.
	trainingRange = 1.3
	// startUtilization is the utilization of the first guess at the estimated limit:
	// servers near their limits are about that busy.
	startUtilization = 0.8
	// minStartShare is the least share of that utilization that is due to load.
	minStartShare = 0.1
	// slotStarts is the number of guesses with a bounded number of slots that are
	// improved; the guess without a bound is the other one.
	slotStarts = 2
	// firstClimbStep is the first relative step of the coordinate ascent.
	firstClimbStep = 0.5
	// lastClimbStep is the relative step below which the ascent ends.
	lastClimbStep = 0.05
	// slotStepDivisor is the ratio of other parameters' relative steps to the relative
	// step of the number of slots.
	slotStepDivisor = 4
	// maxClimbRounds bounds the rounds of the coordinate ascent.
	maxClimbRounds = 15
	// minClimbGain is the gain of R² in a round below which the step is halved.
	minClimbGain = 0.002
	// delayFloorDivisor sets the least delay distinguished from zero, as a part of
	// the decode time: zero has no logarithm.
	delayFloorDivisor = 1e4
	// minLengthRatio is the least length of a prompt or an output, in units of the mean.
	minLengthRatio = 0.01
)

// prefillShares are the prefill shares of the work in the first guesses.
var prefillShares = [...]float64{0.1, 0.4, 0.7}

// slotFactors are the slots of the first guesses, in units of the requests in flight.
var slotFactors = [...]float64{0.8, 0.9, 1, 1.1, 1.2, 1.35, 1.5, 1.75, 2}

// The miss curve (misscurve.go).
const (
	// curveReach is the standard deviation of the Gaussian weight by distance. It is
	// larger than fitReach, because the queueing model accounts for the load.
	curveReach = 0.15
	// minWeight is the weight below which a probe does not count.
	minWeight = 1e-3
	// maxSlowness represents a failed request, as the logarithm of the ratio of its
	// latency to the limit.
	maxSlowness = 20.0
	// minCurveWeight is the least total weight of the requests of a curve.
	minCurveWeight = 150
	// curveRounds is how often the curves are computed, because their weights depend on
	// the limit that they show.
	curveRounds = 2
	// gridStep is the distance of the loads at which the queueing model is simulated.
	gridStep = 0.02
)

// strataQuantiles are the edges of the strata of a miss curve, as quantiles of the
// predicted delay. They are denser at long delays, where requests miss goals.
var strataQuantiles = [...]float64{0.5, 0.7, 0.8, 0.87, 0.92, 0.95, 0.97, 0.98, 0.99, 1}

// delayZones divide the distribution of the predicted delay into bins of equal share:
// 75 bins up to the third quartile, and finer ones above.
var delayZones = [...]struct {
	to   float64
	bins int
}{{0.75, 75}, {0.95, 100}, {1, 150}}

// crossingFactors are the ranges around the estimate in which a crossing is looked for
// first, because each evaluation costs a simulation.
var crossingFactors = [...]float64{1.04, 1.2}

// Post-stratification of means (poststratify.go).
const (
	// maxUtilization is the utilization up to which the simulated queue is stationary.
	maxUtilization = 0.97
	// minStratumRequests is the least number of requests of a stratum.
	minStratumRequests = 5
	// maxStratumWeight bounds the weight of a request, and its inverse.
	maxStratumWeight = 3.0
)

// postStrata are the edges of the strata, as quantiles of the predicted delay.
var postStrata = [...]float64{0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 1}

// The choice among draws of the arrivals (draw.go).
const (
	// drawCount is the number of draws to choose from.
	drawCount = 100
	// ProcessSize is the number of arrivals in the sample of the arrival process.
	ProcessSize = 400_000
	// simulatedArrivals is the number of simulated arrivals among them.
	simulatedArrivals = 50_000
	// simulatedWarmupDivisor makes the first twentieth of a simulation warm-up.
	simulatedWarmupDivisor = 20
)

// drawQuantiles are the quantiles of the predicted delay that a draw should reproduce.
var drawQuantiles = [...]float64{0.5, 0.8, 0.95, 0.99}

// epsilon keeps divisors above zero.
const epsilon = 1e-12
