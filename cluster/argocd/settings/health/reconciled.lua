-- Health of what Crossplane or a provider reconciles: claims, composites and managed resources. All of them have Synced and
-- Ready, and conditions of their own that say why. All conditions are looked at before anything is said.

-- What is waited for comes by itself. Every other reason of a condition that is False needs a person.
local waiting = {
  Creating = true, Waiting = true, Planned = true,
  PendingDecision = true, WaitingForPlacement = true, WaitingForBoundary = true, WaitingForDependents = true, TenantNotReady = true,
  NotAdmitted = true, RollingOut = true, Exposing = true, Issuing = true, NotExposed = true, DefinitionsNotReady = true,
  CredentialPending = true,
}

-- These do not hold readiness back. What is wrong there is said, and no more.
local aside = { Exposed = true, CertificateReady = true, Guarded = true, Responsive = true }
-- These are looked at by themselves.
local apart = { Synced = true, Ready = true, DeletionBlocked = true }

local meta, spec, status = obj.metadata, obj.spec or {}, obj.status or {}
local conditions = {}
for _, c in ipairs(status.conditions or {}) do
  conditions[c.type] = c
end
local synced, ready = conditions.Synced, conditions.Ready

local function is(code, ...)
  local words = {}
  for _, w in ipairs({ ... }) do
    if w ~= "" then
      words[#words + 1] = w
    end
  end
  return { status = code, message = table.concat(words, ": ") }
end

-- A condition in words.
local function said(c)
  if c.message ~= nil and c.message ~= "" then
    return c.message
  end
  return c.reason or ""
end

-- Whether a condition is about the object as it is written now.
local function current(c)
  return c.observedGeneration == nil or c.observedGeneration == 0 or c.observedGeneration >= meta.generation
end

-- What was asked for, and so is no problem: a pool that is to make no runners makes none.
local function asked(c)
  return c ~= nil and c.type == "RunnersMade" and c.reason == "Suspended" and current(c)
end

-- The first condition of the object's own that does not hold, a serious one before one that passes. One that is Unknown does
-- not hold either: so Crossplane tells a claim that its function has failed.
local function problem(which)
  local passing
  for _, c in ipairs(status.conditions or {}) do
    if c.status ~= "True" and not apart[c.type] and not asked(c) and (aside[c.type] or false) == which then
      if not waiting[c.reason] then
        return c
      end
      passing = passing or c
    end
  end
  return passing
end

local paused = (meta.annotations or {})["crossplane.io/paused"] == "true" or (synced ~= nil and synced.reason == "ReconcilePaused")

if meta.deletionTimestamp ~= nil then
  local blocked = conditions.DeletionBlocked
  if blocked ~= nil and blocked.status == "True" then
    return is("Degraded", "deletion is blocked", said(blocked))
  elseif status.phase == "DeletionBlocked" then
    return is("Degraded", "deletion is blocked")
  elseif paused then
    return is("Suspended", "paused while it is being deleted")
  elseif synced ~= nil and synced.status == "False" then
    return is("Degraded", "cannot be deleted", said(synced))
  end
  return is("Progressing", "being deleted")
end

if paused then
  return is("Suspended", "paused")
end

if synced == nil then
  return is("Progressing", "nobody has looked at it yet")
elseif not current(synced) then
  return is("Progressing", "it was changed, and nobody has looked at that yet")
elseif synced.status ~= "True" then
  return is("Degraded", said(synced))
end

-- A claim is told to be Ready for a moment after its spec has changed, by a composite that does not know yet. What it asks for
-- is then not what it has.
local function outdated()
  if spec.type ~= "runtime" or spec.state == "Planned" then
    return nil
  elseif spec.version ~= nil and status.deployedVersion ~= spec.version then
    return "version " .. spec.version .. " is asked for, and " .. (status.deployedVersion or "none") .. " runs"
  elseif spec.version ~= nil and spec.state ~= nil and status.power ~= spec.state then
    return spec.state .. " is asked for, and it is " .. (status.power or "not there")
  end
  return nil
end

local own = problem(false)
if own ~= nil and not waiting[own.reason] then
  if current(own) then
    return is("Degraded", said(own))
  end
  return is("Progressing", "it was changed, and nobody has looked at that yet")
elseif status.phase == "Failed" or status.phase == "Unreachable" then
  return is("Degraded", status.phase, status.message or "")
elseif ready == nil then
  return is("Progressing", "not ready yet")
elseif not current(ready) then
  return is("Progressing", "it was changed, and is not known to be ready since")
elseif ready.status ~= "True" then
  if own ~= nil then
    return is("Progressing", said(own))
  elseif asked(conditions.RunnersMade) then
    return is("Healthy", "Suspended")
  elseif waiting[ready.reason] or ready.reason == nil then
    return is("Progressing", said(ready))
  end
  return is("Degraded", said(ready))
elseif outdated() ~= nil then
  return is("Progressing", outdated())
end

local note = problem(true)
if note ~= nil and not waiting[note.reason] then
  return is("Healthy", status.phase or "ready", said(note))
end
return is("Healthy", status.phase or "ready")
