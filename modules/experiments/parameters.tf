# The parameters of the module's own program, with the values in the paper, and how the runs' configs are built.
locals {
  parameters = {
    market = {
      max_storage      = { default = 100, min = 1, max = 100000, whole = true }
      episode_length   = { default = 50, min = 1, max = 100000, whole = true }
      max_price        = { default = 10, min = 2, max = 100, whole = true }
      max_quality      = { default = 50, min = 1, max = 1000, whole = false }
      customers        = { default = 20, min = 1, max = 100000, whole = true }
      production_price = { default = 3, min = 0, max = 1000, whole = false }
      storage_cost     = { default = 0.1, min = 0, max = 1000, whole = false }
    }
    learning = {
      gamma          = { default = 0.99, min = 0, max = 1, whole = false }
      batch_size     = { default = 32, min = 1, max = 100000, whole = true }
      replay_size    = { default = 100000, min = 1, max = 10000000, whole = true }
      replay_start   = { default = 10000, min = 1, max = 10000000, whole = true }
      learning_rate  = { default = null, min = 1e-10, max = 1, whole = false } # depends on the agent
      target_frames  = { default = 1000, min = 1, max = 10000000, whole = true }
      epsilon_start  = { default = 1, min = 0, max = 1, whole = false }
      epsilon_final  = { default = 0.1, min = 0, max = 1, whole = false }
      epsilon_frames = { default = 75000, min = 1, max = 1000000000, whole = true }
      hidden_units   = { default = 128, min = 1, max = 4096, whole = true }
    }
    environment = {
      agent    = { default = "q_learning", min = null, max = null, whole = false }
      episodes = { default = 2000, min = 1, max = 10000000, whole = true }
      seed     = { default = 0, min = 0, max = 4294967295, whole = true }
    }
  }

  # The paper's rate is for a network. A table takes larger steps.
  learning_rates = { q_learning = 0.1, dqn = 0.000001 }

  # Each run with its own config: those of runs, once per seed.
  declared = merge(
    { for key, run in var.runs : key => { config = run, seeds = [], by = "runs[\"${key}\"]" } if length(var.seeds) == 0 },
    { for seed in var.seeds : "seed-${seed}" => { config = {}, seeds = [seed], by = "config" } if length(var.runs) == 0 },
    merge([for key, run in var.runs : { for seed in var.seeds : "${key}-seed-${seed}" => { config = run, seeds = [seed], by = "runs[\"${key}\"]" } }]...),
  )

  # What config, the run and its seed say about each section.
  layers = {
    for key, run in local.declared : key => {
      for section in distinct(concat(keys(var.config), keys(run.config), length(run.seeds) > 0 ? ["environment"] : [])) : section => [
        for config in concat([var.config, run.config], [for seed in run.seeds : { environment = { seed = seed } }]) :
        config[section] if contains(keys(config), section)
      ]
    }
  }

  # A run's config overrides config: objects parameter by parameter, anything else as a whole. merge() alone would
  # ignore null, which keys() rejects.
  merged = {
    for key, sections in local.layers : key => {
      for section, values in sections : section => try(
        [merge(values...), [for value in values : keys(value)]][0],
        values[length(values) - 1],
      )
    }
  }

  complete = {
    for key, config in local.merged : key => {
      for section, parameters in local.parameters : section => merge(
        { for name, rule in parameters : name => try(config[section][name], rule.default) if rule.min == null },
        {
          for name, rule in parameters : name => try(
            tonumber(config[section][name]),
            name == "learning_rate" ? local.learning_rates[try(config.environment.agent, local.parameters.environment.agent.default)] : rule.default,
            rule.default,
          ) if rule.min != null
        },
      )
    }
  }

  # Your own program has its own parameters.
  configs = { for key, config in local.merged : key => local.own ? jsonencode(local.complete[key]) : jsonencode(config) }

  # Runs may be sensitive. Their keys are shown in any case, in members' names.
  keys = nonsensitive(keys(local.configs))

  # Error messages, for names, too: a misspelt parameter would have no effect.
  said = merge(
    { for config in [var.config] : "config" => config if local.own },
    { for key, run in var.runs : "runs[\"${key}\"]" => run if local.own },
  )
  sections = flatten([
    for where, config in local.said : [
      for section, values in config : { where = where, name = section, values = values, known = contains(keys(local.parameters), section) }
    ]
  ])
  given = flatten([
    for section in local.sections : [
      for name, value in try(merge(section.values), {}) : {
        where = "${section.where}.${section.name}", section = section.name, name = name, value = value
        rule  = try(local.parameters[section.name][name], null)
      }
    ] if section.known
  ])
  problems = concat(
    [
      for section in local.sections : "${section.where} has \"${section.name}\": it may contain ${join(", ", keys(local.parameters))}."
      if !section.known
    ],
    [
      for section in local.sections :
      "${section.where}.${section.name} is ${jsonencode(section.values)}: it must be an object with ${join(", ", keys(local.parameters[section.name]))}."
      if section.known && !can(keys(section.values))
    ],
    [
      for given in local.given : "${given.where} has \"${given.name}\": it may contain ${join(", ", keys(local.parameters[given.section]))}."
      if given.rule == null
    ],
    [
      for given in local.given :
      "${given.where}.agent is ${jsonencode(given.value)}: it must be ${join(" or ", formatlist("%q", keys(local.learning_rates)))}."
      if given.name == "agent" && !try(contains(keys(local.learning_rates), given.value), false)
    ],
    [
      for given in local.given :
      "${given.where}.${given.name} is ${jsonencode(given.value)}: it must be a ${given.rule.whole ? "whole " : ""}number from ${given.rule.min} to ${given.rule.max}."
      if given.rule != null && given.name != "agent" && !try(
        given.value >= given.rule.min && given.value <= given.rule.max && (!given.rule.whole || floor(given.value) == tonumber(given.value)), false
      )
    ],
  )

  # Parameters that depend on each other are checked once each of them is valid.
  misfits = !local.own || length(local.problems) > 0 ? [] : distinct(flatten([
    for key, config in local.complete : [
      for rule in [
        { low = "batch_size", high = "replay_start" },
        { low = "replay_start", high = "replay_size" },
        { low = "epsilon_final", high = "epsilon_start" },
      ] : "${local.declared[key].by} has learning.${rule.low} = ${config.learning[rule.low]} and learning.${rule.high} = ${config.learning[rule.high]}: ${rule.low} must not be above ${rule.high}."
      if config.learning[rule.low] > config.learning[rule.high]
    ]
  ]))

  misnamed = [
    for key in local.keys : key
    if !can(regex("^[a-z]([a-z0-9-]*[a-z0-9])?$", key)) || length("${var.name}-${key}-0") > 63
  ]
}
