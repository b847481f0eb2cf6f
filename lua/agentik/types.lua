---@meta
--- Types of the options. Written by scripts/generate.py from agentik.config.schema: do not edit.

---@alias agentik.Key string|{ [1]: string, mode: string|string[] }
---@alias agentik.KeySpec false|agentik.Key|agentik.Key[]

-- The options in force: agentik.config.get().
---@class (exact) agentik.Config.Keys.Chat
---@field next_message agentik.KeySpec
---@field prev_message agentik.KeySpec
---@field next_tool agentik.KeySpec
---@field prev_tool agentik.KeySpec
---@field open agentik.KeySpec
---@field goto_place agentik.KeySpec
---@field open_link agentik.KeySpec
---@field yank_code agentik.KeySpec
---@field resend agentik.KeySpec
---@field compose agentik.KeySpec
---@field stop agentik.KeySpec
---@field sessions agentik.KeySpec
---@field modes agentik.KeySpec
---@field changes agentik.KeySpec
---@field pending agentik.KeySpec
---@field close agentik.KeySpec
---@field help agentik.KeySpec

---@class (exact) agentik.Config.Keys.Compose
---@field send agentik.KeySpec
---@field send_now agentik.KeySpec
---@field history_prev agentik.KeySpec
---@field history_next agentik.KeySpec
---@field attach agentik.KeySpec
---@field detach agentik.KeySpec
---@field dictate agentik.KeySpec
---@field stop agentik.KeySpec
---@field sessions agentik.KeySpec
---@field modes agentik.KeySpec
---@field pending agentik.KeySpec
---@field close agentik.KeySpec
---@field help agentik.KeySpec

---@class (exact) agentik.Config.Keys.Pending
---@field apply agentik.KeySpec
---@field send_now agentik.KeySpec
---@field edit agentik.KeySpec
---@field remove agentik.KeySpec
---@field clear agentik.KeySpec
---@field pause agentik.KeySpec
---@field discard agentik.KeySpec
---@field close agentik.KeySpec
---@field help agentik.KeySpec

---@class (exact) agentik.Config.Keys.Permission
---@field option agentik.KeySpec
---@field choose agentik.KeySpec
---@field diff agentik.KeySpec
---@field next agentik.KeySpec
---@field prev agentik.KeySpec

---@class (exact) agentik.Config.Keys.Diff
---@field accept agentik.KeySpec
---@field reject agentik.KeySpec
---@field open agentik.KeySpec
---@field next_file agentik.KeySpec
---@field prev_file agentik.KeySpec
---@field close agentik.KeySpec
---@field help agentik.KeySpec

---@class (exact) agentik.Config.Keys
---@field chat false|agentik.Config.Keys.Chat
---@field compose false|agentik.Config.Keys.Compose
---@field pending false|agentik.Config.Keys.Pending
---@field permission false|agentik.Config.Keys.Permission
---@field diff false|agentik.Config.Keys.Diff

---@class (exact) agentik.Config.Layout
---@field position "right"|"left"|"bottom"|"top"|"tab"|"float"
---@field width number
---@field height number
---@field pending_height integer
---@field compose_min_height integer
---@field compose_max_height integer

---@class (exact) agentik.Config.Fold
---@field thoughts boolean
---@field tools boolean

---@class (exact) agentik.Config.Buffers
---@field conflict "ask"|"keep"|"take"
---@field autocmds boolean

---@class (exact) agentik.Config.Dictation
---@field language? string
---@field device? string
---@field identifiers boolean
---@field hotwords string[]

---@class (exact) agentik.Config
---@field agent? string
---@field home? string
---@field python? string
---@field settings table
---@field restore boolean
---@field notify boolean
---@field follow boolean
---@field icons "unicode"|"ascii"|table
---@field layout agentik.Config.Layout
---@field fold agentik.Config.Fold
---@field buffers agentik.Config.Buffers
---@field dictation agentik.Config.Dictation
---@field keys agentik.Config.Keys

-- The options as given to setup(): everything may be left out.
---@class (exact) agentik.Options.Keys.Chat
---@field next_message? agentik.KeySpec
---@field prev_message? agentik.KeySpec
---@field next_tool? agentik.KeySpec
---@field prev_tool? agentik.KeySpec
---@field open? agentik.KeySpec
---@field goto_place? agentik.KeySpec
---@field open_link? agentik.KeySpec
---@field yank_code? agentik.KeySpec
---@field resend? agentik.KeySpec
---@field compose? agentik.KeySpec
---@field stop? agentik.KeySpec
---@field sessions? agentik.KeySpec
---@field modes? agentik.KeySpec
---@field changes? agentik.KeySpec
---@field pending? agentik.KeySpec
---@field close? agentik.KeySpec
---@field help? agentik.KeySpec

---@class (exact) agentik.Options.Keys.Compose
---@field send? agentik.KeySpec
---@field send_now? agentik.KeySpec
---@field history_prev? agentik.KeySpec
---@field history_next? agentik.KeySpec
---@field attach? agentik.KeySpec
---@field detach? agentik.KeySpec
---@field dictate? agentik.KeySpec
---@field stop? agentik.KeySpec
---@field sessions? agentik.KeySpec
---@field modes? agentik.KeySpec
---@field pending? agentik.KeySpec
---@field close? agentik.KeySpec
---@field help? agentik.KeySpec

---@class (exact) agentik.Options.Keys.Pending
---@field apply? agentik.KeySpec
---@field send_now? agentik.KeySpec
---@field edit? agentik.KeySpec
---@field remove? agentik.KeySpec
---@field clear? agentik.KeySpec
---@field pause? agentik.KeySpec
---@field discard? agentik.KeySpec
---@field close? agentik.KeySpec
---@field help? agentik.KeySpec

---@class (exact) agentik.Options.Keys.Permission
---@field option? agentik.KeySpec
---@field choose? agentik.KeySpec
---@field diff? agentik.KeySpec
---@field next? agentik.KeySpec
---@field prev? agentik.KeySpec

---@class (exact) agentik.Options.Keys.Diff
---@field accept? agentik.KeySpec
---@field reject? agentik.KeySpec
---@field open? agentik.KeySpec
---@field next_file? agentik.KeySpec
---@field prev_file? agentik.KeySpec
---@field close? agentik.KeySpec
---@field help? agentik.KeySpec

---@class (exact) agentik.Options.Keys
---@field chat? false|agentik.Options.Keys.Chat
---@field compose? false|agentik.Options.Keys.Compose
---@field pending? false|agentik.Options.Keys.Pending
---@field permission? false|agentik.Options.Keys.Permission
---@field diff? false|agentik.Options.Keys.Diff

---@class (exact) agentik.Options.Layout
---@field position? "right"|"left"|"bottom"|"top"|"tab"|"float"
---@field width? number
---@field height? number
---@field pending_height? integer
---@field compose_min_height? integer
---@field compose_max_height? integer

---@class (exact) agentik.Options.Fold
---@field thoughts? boolean
---@field tools? boolean

---@class (exact) agentik.Options.Buffers
---@field conflict? "ask"|"keep"|"take"
---@field autocmds? boolean

---@class (exact) agentik.Options.Dictation
---@field language? string
---@field device? string
---@field identifiers? boolean
---@field hotwords? string[]

---@class (exact) agentik.Options
---@field agent? string
---@field home? string
---@field python? string
---@field settings? table
---@field restore? boolean
---@field notify? boolean
---@field follow? boolean
---@field icons? "unicode"|"ascii"|table
---@field layout? agentik.Options.Layout
---@field fold? agentik.Options.Fold
---@field buffers? agentik.Options.Buffers
---@field dictation? agentik.Options.Dictation
---@field keys? agentik.Options.Keys
