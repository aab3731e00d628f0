-- Health of the record of one runner. Its phase is a verdict that stays; what it does until then the server says.
local meta, status = obj.metadata, obj.status or {}
local seen = status.atProvider or {}
local conditions = {}
for _, c in ipairs(status.conditions or {}) do
  conditions[c.type] = c
end
local synced, definitions = conditions.Synced, conditions.DefinitionsCurrent

local said = seen.reason or ""
if seen.message ~= nil and seen.message ~= "" then
  said = said ~= "" and said .. ": " .. seen.message or seen.message
end

if meta.deletionTimestamp ~= nil then
  return { status = "Progressing", message = "being deleted" }
elseif seen.phase == "Completed" then
  return { status = "Healthy", message = said }
elseif seen.phase == "Failed" then
  return { status = "Degraded", message = said }
elseif (meta.annotations or {})["crossplane.io/paused"] == "true" or (synced ~= nil and synced.reason == "ReconcilePaused") then
  return { status = "Suspended", message = "paused" }
elseif definitions ~= nil and definitions.status == "False" then
  local code = definitions.reason == "DefinitionsNotReady" and "Progressing" or "Degraded"
  return { status = code, message = definitions.message or definitions.reason or "" }
elseif synced ~= nil and synced.status == "False" then
  return { status = "Degraded", message = synced.message or synced.reason or "" }
elseif seen.state == "Idle" then
  return { status = "Healthy", message = "waits for a job" }
elseif seen.state == "Active" then
  return { status = "Healthy", message = "has a job in hand" }
end
return { status = "Progressing", message = said ~= "" and said or "starting" }
